// Package proc has the types in which a host tells the engine about its processes and terminals.
// They hold what Linux's /proc says. An implementation of hostapi.Processes fills them in. JSON
// carries them without loss.
//
// The zero value of a field means that it is not known, unless its comment says otherwise.
package proc

import (
	"strconv"
	"strings"
)

// A Process is what the kernel says about one process.
type Process struct {
	PID     int
	Parent  int // the id of its parent
	Group   int // the id of its process group
	Session int // the id of its process session

	// State is the letter of /proc/PID/stat: "R" runs, "S" and "D" sleep, "T" is stopped, "Z" has
	// ended with all its threads and is not reaped.
	State string

	// TTY is the number of its controlling terminal, major and minor, as in /proc/PID/stat. 0: it
	// has none.
	TTY int

	// Foreground is the id of the foreground process group of that terminal. 0 or less: there is
	// none.
	Foreground int

	// Start is the time of its start, in ticks of 1/100 s since the start of the machine.
	Start int64

	// Image identifies the program that the process executes: it changes with exec and stays the
	// same with fork. Compare it only for equality. "": only the process's own user may see it.
	Image string

	// Caught are the signals up to 31 for which it has a handler, and Blocked those that its main
	// thread does not take now: bit n-1 is that of signal n.
	Caught  uint32 `json:",omitempty"`
	Blocked uint32 `json:",omitempty"`

	// Name is the program's name, cut by the kernel to 15 bytes. It may be empty, and may hold any
	// byte but the end of a line.
	Name string
}

// A Shell is what a Look would say of a session's shell that waits for its next command.
type Shell struct {
	TTY   int    // the number of its terminal
	Reads string // what it reads, as Look.Reads
	Image string // its program, as Process.Image
}

// Catches reports whether the process is known to have a handler for sig.
func (p *Process) Catches(sig Signal) bool { return sig.in(p.Caught) }

// Blocks reports whether the process is known to block sig.
func (p *Process) Blocks(sig Signal) bool { return sig.in(p.Blocked) }

// in reports whether the signal, a number, is in the set.
func (s Signal) in(set uint32) bool {
	n, err := strconv.Atoi(string(s))
	return err == nil && n > 0 && n < 32 && set>>(n-1)&1 == 1
}

// Ended reports whether the process is a zombie (Z), or the kernel is removing it (X).
func (p *Process) Ended() bool {
	return strings.HasPrefix(p.State, "Z") || strings.HasPrefix(p.State, "X")
}

// Left returns the processes of ps that have not ended by the time of now, which describes the
// processes that have these ids. If an id belongs to another process in now, its process has ended.
func Left(ps, now []Process) []Process {
	byID := make(map[int]Process, len(now))
	for _, p := range now {
		byID[p.PID] = p
	}
	var left []Process
	for _, p := range ps {
		if q, ok := byID[p.PID]; ok && q.Start == p.Start && !q.Ended() {
			left = append(left, p)
		}
	}
	return left
}

// Modes are the modes of a terminal.
type Modes struct {
	Known  bool // false: the terminal cannot be opened, and the other fields say nothing
	Raw    bool // the program gets input byte by byte: -icanon
	NoEcho bool // what is typed is not shown: -echo
}

// A Signal is the name of a signal without SIG, as the shell's kill takes it, or its number on the
// host in decimal. Systems differ in the numbers, but not in the names.
type Signal string

// The signals that the engine sends by name.
const (
	SIGHUP  Signal = "HUP"
	SIGINT  Signal = "INT"
	SIGTERM Signal = "TERM"
	SIGKILL Signal = "KILL"
	SIGSTOP Signal = "STOP"
	SIGCONT Signal = "CONT"
)

// TicksPerSecond is the unit of Process.Start (USER_HZ, which is 100 on every architecture that Go
// runs on).
const TicksPerSecond = 100
