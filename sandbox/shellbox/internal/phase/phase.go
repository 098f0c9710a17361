// Package phase holds the life of a session as two machines: the command that is under way, and the
// shell that runs it. Each is a table that holds every move from one phase to the next, and Advance
// is the only way to move.
//
// A command's way through its phases is
//
//	queued -> sent -> running -> returned -> flushing -> ended -> reported
//
// A command that a shell has not taken goes back from sent to queued. A command that is killed
// takes the same way through the killed phases. Steps may be left out: a shell may end before its
// command's output begins, and most commands have no writers to wait for.
//
// A shell's way is
//
//	starting -> ready -> gone
//
// with execed or stopped before gone, if the shell is of no more use and about to be killed.
//
// An event that its table does not allow in that phase is a fault of the engine. It changes
// nothing, so that the command and the shell still end by their tables. Advance then returns false,
// and the session logs that at level Error. Tests give their boxes a Logger that fails them then.
//
// State outside the tables may have any value in any phase. In package session, the flags of a
// command say what was done with it (logged, interruptTyped, terminalReplied), the session's
// restarted and alternate are notes for the next command, and question and typedAhead are data of
// the phases running and sent.
package phase

// A table holds the phase that follows a phase at an event. Events that it does not hold for a
// phase cannot happen in that phase.
type table[P, E comparable] map[P]map[E]P

// advance moves p to the phase that follows at e. If e cannot happen in p, it returns false.
func (t table[P, E]) advance(p *P, e E) bool {
	next, ok := t[*p][e]
	if ok {
		*p = next
	}
	return ok
}

// A Command is how far a command has got.
type Command int

const (
	Queued         Command = iota + 1 // no shell has the command's line
	Sent                              // the line is on the shell's pipe
	Running                           // the command's output has begun
	KilledSent                        // sent, and being killed
	KilledRunning                     // running, and being killed
	Returned                          // the shell is back; what the command has left is cleaned up
	KilledReturned                    // returned, and the killing cleans up
	Flushing                          // over; writers of Follow or LogTo have not got all output
	KilledFlushing                    // flushing, after it was killed
	Ended                             // there is a Result, or the command has never run
	Reported                          // a call has returned the Result
)

// A CommandEvent moves a command to another phase.
type CommandEvent int

const (
	LineSent       CommandEvent = iota // the line was written to the shell's pipe
	OutputBegan                        // the shell has printed the Begin marker
	LineDropped                        // the shell has not run the line, or has ended before
	ShellReturned                      // the shell has printed the End marker; or it has ended
	KillBegan                          // the command is to be killed
	WritersLag                         // the command is over; a writer has not got all output
	Finished                           // the command is over, and the writers have all output
	ResultReturned                     // a call has returned the Result
	events
)

// commandTable is the table of commands.
//
// A queued command is not killed: it finishes without a Result. A command whose shell has returned
// is not killed either: only its writers are given less time.
var commandTable = table[Command, CommandEvent]{
	Queued: {LineSent: Sent, WritersLag: Flushing, Finished: Ended},
	Sent: {OutputBegan: Running, LineDropped: Queued, ShellReturned: Returned,
		KillBegan: KilledSent, WritersLag: Flushing, Finished: Ended},
	Running: {ShellReturned: Returned, KillBegan: KilledRunning, WritersLag: Flushing,
		Finished: Ended},
	KilledSent: {OutputBegan: KilledRunning, ShellReturned: KilledReturned,
		WritersLag: KilledFlushing, Finished: Ended},
	KilledRunning:  {ShellReturned: KilledReturned, WritersLag: KilledFlushing, Finished: Ended},
	Returned:       {WritersLag: Flushing, Finished: Ended},
	KilledReturned: {WritersLag: KilledFlushing, Finished: Ended},
	Flushing:       {WritersLag: Flushing, Finished: Ended},
	KilledFlushing: {WritersLag: KilledFlushing, Finished: Ended},
	Ended:          {ResultReturned: Reported},
	Reported:       {ResultReturned: Reported},
}

// Advance moves the command to the phase that follows at e. If e cannot happen, it returns false.
func (p *Command) Advance(e CommandEvent) bool { return commandTable.advance(p, e) }

// ToBegin reports whether the command has still to begin, and is not killed.
func (p Command) ToBegin() bool { return p == Queued || p == Sent }

// OnPipe reports whether the shell has the line and has not said that it runs it.
func (p Command) OnPipe() bool { return p == Sent || p == KilledSent }

// Prints reports whether what the shell's terminal shows is the command's output.
func (p Command) Prints() bool { return p == Running || p == KilledRunning }

// Killed reports whether the command is being killed, or cleaned up after that.
func (p Command) Killed() bool {
	return p == KilledSent || p == KilledRunning || p == KilledReturned || p == KilledFlushing
}

// Over reports whether the shell is back: no event can change how the command has ended.
func (p Command) Over() bool { return p >= Returned }

func (p Command) String() string {
	return [...]string{"none", "queued", "sent", "running", "killed sent", "killed running",
		"returned", "killed returned", "flushing", "killed flushing", "ended", "reported"}[p]
}

func (e CommandEvent) String() string {
	return [...]string{"line sent", "output began", "line dropped", "shell returned", "kill began",
		"writers lag", "finished", "result returned"}[e]
}

// A Shell is how far a shell has got.
type Shell int

const (
	Starting Shell = iota + 1 // it has not answered its first line
	Ready                     // it is at its prompt, or has the session's command
	Execed                    // exec has put another interactive shell in its place
	Stopped                   // it was found stopped: its End markers may be forged
	Gone                      // it has ended, or the host is lost
)

// A ShellEvent moves a shell to another phase.
type ShellEvent int

const (
	Greeted      ShellEvent = iota // it has answered, and is the session's
	ExecFound                      // a look has found another program in its place
	StopFound                      // a look has found it stopped
	ProcessEnded                   // its process has ended, and its output has been read
	shellEvents
)

// shellTable is the table of shells. A look may be older than the end of the shell.
var shellTable = table[Shell, ShellEvent]{
	Starting: {Greeted: Ready, ProcessEnded: Gone},
	Ready:    {ExecFound: Execed, StopFound: Stopped, ProcessEnded: Gone},
	Execed:   {StopFound: Stopped, ProcessEnded: Gone},
	Stopped:  {StopFound: Stopped, ProcessEnded: Gone},
	Gone:     {StopFound: Gone},
}

// Advance moves the shell to the phase that follows at e. If e cannot happen, it returns false.
func (p *Shell) Advance(e ShellEvent) bool { return shellTable.advance(p, e) }

// TakesCommands reports whether the shell has been greeted and has not ended. A shell that is about
// to be killed takes commands, too: they go on to the shell that replaces it.
func (p Shell) TakesCommands() bool { return p == Ready || p == Execed || p == Stopped }

func (p Shell) String() string {
	return [...]string{"none", "starting", "ready", "execed", "stopped", "gone"}[p]
}

func (e ShellEvent) String() string {
	return [...]string{"greeted", "exec found", "stop found", "process ended"}[e]
}
