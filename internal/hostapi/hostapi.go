// Package hostapi holds the interfaces that a shellbox.Host, its processes and its files implement
// only within this module. Package shellbox asserts them. A Host needs none of them: without them
// the engine finds another way, or the sandbox can do less.
//
// Package proc, below this one, has the types of the answers about processes.
package hostapi

import (
	"context"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A Process is a shellbox.Process that the host's Start has returned. Hosts assert their own type.
type Process interface{ PID() int }

// A SettledProcess is a shellbox.Process that can tell when its output has arrived. It is for a
// Host that implements no Processes. The output may take a slower way than the answers of the
// control shell. Without Settle, the engine may then report that a program waits before it has the
// program's output.
type SettledProcess interface {
	Process
	// Settle waits until a Read of Stdout returns all that the program had printed on its terminal
	// before the call. It waits about a second at most. busy reports that this was not enough.
	Settle(ctx context.Context) (busy bool, err error)
}

// An OOMTeller is a shellbox.Host that counts those of its processes that the kernel killed because
// memory had run out. The engine sets sandbox.Result.OOM from the count.
type OOMTeller interface {
	// OOMKills returns how many processes of the host were killed after the byte at offset since
	// was written to p.Commands. Offsets count from the time when this Host got p. If since is
	// negative, OOMKills counts from the program's start. It counts at least until p.Stdout had
	// shown that many bytes, if shown is above 0: the caller has read them, and a shell's marker is
	// at their end. A host that knows the answer by then need not be asked. The result may be 1 for
	// any number above 0. The caller has not closed p.
	OOMKills(ctx context.Context, p Process, since, shown int64) (int64, error)
}

// A ReadTeller is a Processes that may know, without asking, that a Discard would drop nothing.
type ReadTeller interface {
	// AllRead reports whether programs had read all that was written to p.Stdin when p.Stdout had
	// shown that many bytes, as in OOMKills. If it is not known, AllRead returns false.
	AllRead(ctx context.Context, p Process, shown int64) bool
}

// A ShellTeller is a Processes that can describe a session's shell with less work than a Look.
type ShellTeller interface {
	// Shell describes a shell that has just executed a line from its pipe. p is on a terminal. If
	// something is not known, Shell returns the zero value. An error is as in Processes.
	Shell(ctx context.Context, p Process) (proc.Shell, error)
}
