package place

import "time"

// A Status says what a box is doing.
type Status string

// The statuses of a box. Package service has the same statuses under the same names. Docker's
// states map to them as follows:
//
//	created     Starting
//	restarting  Starting
//	running     Running; Starting or Error while its health check fails (see service.Health)
//	paused      Paused
//	exited      Paused: its files are there, its programs are not; Resume starts it again
//	removing    Missing
//	dead        Error
//	any other   Unknown
//
// A box that a process has not finished starting is Starting, whatever its container does.
const (
	Starting Status = "STARTING"
	Running  Status = "RUNNING"
	Paused   Status = "PAUSED"
	Error    Status = "ERROR"
	Unknown  Status = "UNKNOWN" // the engine cannot say
	Missing  Status = "MISSING" // known to be gone
)

// Kept says what the last Resume of a box brought back, or what a copy got of its box.
type Kept string

// These say what a Resume brings back.
const (
	KeptNothing Kept = ""       // the box has not been resumed
	KeptAll     Kept = "all"    // its files, shells, variables and programs
	KeptShells  Kept = "shells" // its files, shells and variables: Fork has made it
	KeptFiles   Kept = "files"  // its files; its programs had ended
)

// A Use is what a box uses of its machine.
type Use struct {
	CPU         time.Duration // processor time since the box was started
	Memory      int64         // bytes
	MemoryLimit int64         // bytes; without a limit, what the machine has
	PIDs        int64         // processes and threads
	PIDsLimit   int64         // 0 means no limit
	Disk        int64         // bytes that the box has written beside its image
	// OOMKills is how often the kernel killed a program of the box because memory was used up. It
	// is a lower bound: the engine keeps no exact count.
	OOMKills int
}
