// Package proc is the vocabulary in which a host tells the engine about its processes: what Linux's
// /proc says, in types. Whoever implements shellbox.Processes fills them in. They hold no more than
// what JSON carries.
//
// The zero value of a field means that it is not known, unless its comment says otherwise.
package proc

import "strings"

// A Process is what the kernel says about one process.
type Process struct {
	PID     int
	Parent  int // the parent's id
	Group   int // the id of its process group
	Session int // the id of its process session
	// a letter of /proc/PID/stat: "R" runs, "S" and "D" sleep, "T" is stopped, "Z" has ended with
	// all its threads and is not reaped
	State string
	// the number of its controlling terminal, as /proc/PID/stat has it (major and minor); 0: it has
	// none
	TTY int
	// the id of the foreground process group of that terminal; 0 or less: there is none
	Foreground int
	Start      int64 // when it was started: in ticks of 1/100 s since the start of the machine

	// Image tells one program from another within a process: it changes with exec and stays the
	// same with fork. It is not to be taken apart. "": the process shows it to nobody but its own
	// user.
	Image string

	// the program's, cut by the kernel to 15 bytes. It may be empty, and may hold any byte but the
	// end of a line
	Name string
}

// Ended reports whether the process is no more than a zombie (Z), or the kernel is removing it (X).
func (p *Process) Ended() bool {
	return strings.HasPrefix(p.State, "Z") || strings.HasPrefix(p.State, "X")
}

// Left returns those of ps that have not ended, according to what now tells of the same ids. Where
// an id is another process's by now, its process has ended.
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

// Modes are those of a terminal.
type Modes struct {
	Known  bool // false: the terminal cannot be opened, and the other fields say nothing
	Raw    bool // input is given to the program byte by byte: -icanon
	NoEcho bool // what is typed is not shown: -echo
}

// A Signal is a signal's name without SIG, as in the shell's kill, or its number on the host, in
// decimal. Systems differ in the numbers, not in the names.
type Signal string

// The signals that the engine sends by name.
const (
	SIGHUP  Signal = "HUP"
	SIGINT  Signal = "INT"
	SIGTERM Signal = "TERM"
	SIGKILL Signal = "KILL"
	SIGCONT Signal = "CONT"
)

// TicksPerSecond is the unit of Process.Start (USER_HZ, which is 100 on every architecture that Go
// runs on).
const TicksPerSecond = 100
