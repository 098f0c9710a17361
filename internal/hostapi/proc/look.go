package proc

// A Look is what the kernel says at one moment about a program on a terminal, such as a session's
// shell, and about the threads that wait for that terminal.
//
// The processes of the terminal are the program, its descendants, and all others of its process
// session, those in the background included.
type Look struct {
	// Gone: the program has ended. Of the other fields, only those of the terminal may be set then.
	Gone    bool `json:",omitempty"`
	Stopped bool `json:",omitempty"` // the program is stopped, as by SIGSTOP

	// Turns is how many times the program's main thread has been given a processor.
	Turns int64 `json:",omitempty"`

	// Foreground is the id of the foreground process group of its terminal. 0: there is none, or it
	// is not known.
	Foreground int `json:",omitempty"`

	// Reads names the pipe that the program's main thread is blocked in reading, as in
	// "pipe:[4711]". Compare it only for equality. "": the thread is not blocked in such a read, or
	// reads the terminal, or that is not known.
	Reads string `json:",omitempty"`

	Image string   `json:",omitempty"` // as Process.Image; it changes with exec
	Args  []string `json:",omitempty"` // the program's arguments, its name first; nil: unknown

	// TTY is the number of the program's controlling terminal, as Process.TTY. Where the kernel
	// names none (gVisor), it is the terminal that the program has open as its standard error,
	// output or input.
	TTY   int   `json:",omitempty"`
	Modes Modes `json:",omitzero"` // of that terminal

	// Waits are the threads that wait for input from the terminal. If a relay (script, sudo, ssh
	// -t, tmux) reads the terminal, they are the threads that wait for the terminal behind the
	// relay. The program's own thread is among them when it reads the terminal (a shell's read).
	Waits []Wait `json:",omitempty"`

	// Hidden: a sleeping process of the terminal, not in the background, shows only to its own user
	// what it waits for, or this system has no such files (gVisor). It may be waiting for the
	// terminal and is not in Waits. A relay that hides itself (sudo) does not count, but the
	// processes behind it do.
	Hidden bool `json:",omitempty"`

	// HiddenModes are the modes of the terminal of that process, which may be behind a relay.
	HiddenModes Modes `json:",omitzero"`

	// Runs: a process of the terminal runs, is about to run, or waits for a disk.
	Runs bool `json:",omitempty"`

	// Total is how many times all threads of the terminal's processes have been given a processor.
	// It falls when one of them ends.
	Total int64 `json:",omitempty"`
}

// A Wait is one thread's wait for input from a terminal.
type Wait struct {
	PID, TID int    `json:",omitempty"`
	Name     string `json:",omitempty"` // the program's, as Process.Name
	Modes    Modes  `json:",omitzero"`  // of the terminal that it waits for

	// Turns is how many times the thread, and the relays that bring it its input, have been given a
	// processor.
	Turns int64 `json:",omitempty"`

	// Alone: nothing can go on without input from the terminal in the thread's process, and in the
	// processes that wait for it, up to the shell. If it is false, a time limit passes there,
	// another descriptor has data, or another thread runs.
	Alone bool `json:",omitempty"`

	// OthersRun: another process of the command can go on by itself.
	OthersRun bool `json:",omitempty"`
}
