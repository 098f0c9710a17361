package proc

// A Look is what the kernel says, at one moment, about a program on a terminal, such as a session's
// shell, and about whoever waits for that terminal.
type Look struct {
	// the program has ended; nothing else is set then, but what is said about the terminal may be
	Gone    bool `json:",omitempty"`
	Stopped bool `json:",omitempty"` // the program is stopped, as by SIGSTOP
	// how many times the program's main thread has been given a processor
	Turns int64 `json:",omitempty"`
	// the id of the foreground process group of its terminal; 0: there is none, or nobody tells
	Foreground int `json:",omitempty"`

	// Reads names what the program's main thread is blocked in reading, if that is not the
	// terminal: a pipe, as in "pipe:[4711]". It is not to be taken apart: the same name is the same
	// pipe. "": it is not blocked in such a read, or nobody tells.
	Reads string `json:",omitempty"`

	Image string   `json:",omitempty"` // as Process.Image; it changes with exec
	Args  []string `json:",omitempty"` // the program's arguments, from the name on; nil: unknown

	// TTY is the number of the program's controlling terminal, as Process.TTY. Where the kernel
	// names none (gVisor), it is the terminal that the program has open as its standard error,
	// output or input.
	TTY   int   `json:",omitempty"`
	Modes Modes `json:",omitzero"` // of that terminal

	// Waits are the threads that wait for input from the terminal or, where that is a relay's
	// (script, sudo, ssh -t, tmux), from the terminal behind it. The program's own thread is among
	// them when it reads the terminal (read x, in a shell).
	Waits []Wait `json:",omitempty"`

	// The processes of the terminal are the program, its descendants, and all others of its process
	// session, in the background too.

	// Hidden: a sleeping process of the terminal, not one in the background, shows to nobody but
	// its user what it waits for, or this system has no such files (gVisor). Waits then leaves out
	// what it may be waiting for. A relay that hides itself (sudo) does not count: what is behind
	// it does.
	Hidden bool `json:",omitempty"`
	// of the terminal of that process, which may be behind a relay
	HiddenModes Modes `json:",omitzero"`

	// a process of the terminal runs, or is about to, or waits for a disk
	Runs bool `json:",omitempty"`
	// how many times their threads have been given a processor, all together. It falls when one
	// ends
	Total int64 `json:",omitempty"`
}

// A Wait is one thread's wait for input from a terminal.
type Wait struct {
	PID, TID int    `json:",omitempty"`
	Name     string `json:",omitempty"` // the program's, as Process.Name
	Modes    Modes  `json:",omitzero"`  // of the terminal that it waits for
	// how many times it has been given a processor, with the relays that bring it its input
	Turns int64 `json:",omitempty"`

	// Alone: it waits for nothing else. If not, it may go on by itself: a time limit passes,
	// another descriptor has data, another thread of the process runs.
	Alone bool `json:",omitempty"`
}
