// Package hostapi holds the interfaces that a shellbox.Host, its processes and its files implement
// only within this module. Package shellbox asserts them. A Host needs none of them: without them
// the engine finds another way, or the sandbox can do less.
//
// Package proc, below this one, has the types of the answers about processes.
package hostapi

import "context"

// A Process is a shellbox.Process that the host's Start has returned. Hosts assert their own type.
type Process interface{ PID() int }

// A SettledProcess is a shellbox.Process that can tell when its output has arrived. It is for a
// Host that implements no Processes. Without Settle, the engine may find that a program waits
// shortly before the program's output is there, if that takes a slower way than the answers of the
// control shell.
type SettledProcess interface {
	Process
	// Settle waits until a Read of Stdout returns all that the program had printed on its terminal
	// before the call. It waits about a second at most. busy reports that this was not enough.
	Settle(ctx context.Context) (busy bool, err error)
}

// An OOMTeller is a shellbox.Host that counts its processes that the kernel has killed because
// memory had run out. The engine sets sandbox.Result.OOM by it.
type OOMTeller interface {
	// OOMKills returns how many processes of the host have been killed since the byte of that
	// offset was written to p.Commands, counted from the time when p became this host's; if since
	// is negative, since the program's start. p has not been closed.
	OOMKills(ctx context.Context, p Process, since int64) (int64, error)
}
