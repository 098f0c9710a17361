package shellbox

import "fmt"

// Two machines make a session: the command that is under way, and the shell that runs it. Each is a
// table that holds every move from one phase to the next. advanceLocked and advanceShellLocked are
// the only functions that change a phase.
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
// nothing, so that the command and the shell still end by their tables, and it is logged at level
// Error. Tests give their boxes a Logger that fails them then.
//
// State outside the tables may have any value in any phase. The flags of a command say what was
// done with it (logged, interruptTyped, terminalReplied), session.restarted and session.alternate
// are notes for the next command, and question and typedAhead are data of the phases running and
// sent.

// A table holds the phase that follows a phase at an event. Events that it does not hold for a
// phase cannot happen in that phase.
type table[P, E comparable] map[P]map[E]P

// next returns the phase that follows p at e. If e cannot happen in p, it returns p and false.
func (t table[P, E]) next(p P, e E) (P, bool) {
	if next, ok := t[p][e]; ok {
		return next, true
	}
	return p, false
}

// A phase is how far a command has got.
type phase int

const (
	queued         phase = iota + 1 // no shell has the command's line
	sent                            // the line is on the shell's pipe
	running                         // the command's output has begun
	killedSent                      // sent, and being killed
	killedRunning                   // running, and being killed
	returned                        // the shell is back; what the command has left is cleaned up
	killedReturned                  // returned, and the killing cleans up
	flushing                        // over; writers of Follow or LogTo have not got all output
	killedFlushing                  // flushing, after it was killed
	ended                           // there is a Result, or the command has never run
	reported                        // a call has returned the Result
)

// An event moves a command to another phase.
type event int

const (
	lineSent       event = iota // the line was written to the shell's pipe
	outputBegan                 // the shell has printed the Begin marker
	lineDropped                 // the shell has not run the line, or has ended before
	shellReturned               // the shell has printed the End marker; or it has ended
	killBegan                   // the command is to be killed
	writersLag                  // the command is over; a writer has not got all of the output
	finished                    // the command is over, and the writers have all of the output
	resultReturned              // a call has returned the Result
	events
)

// commandTable is the table of commands.
//
// A queued command is not killed: it finishes without a Result. A command whose shell has returned
// is not killed either: only its writers are given less time.
var commandTable = table[phase, event]{
	queued: {lineSent: sent, writersLag: flushing, finished: ended},
	sent: {outputBegan: running, lineDropped: queued, shellReturned: returned,
		killBegan: killedSent, writersLag: flushing, finished: ended},
	running: {shellReturned: returned, killBegan: killedRunning, writersLag: flushing,
		finished: ended},
	killedSent: {outputBegan: killedRunning, shellReturned: killedReturned,
		writersLag: killedFlushing, finished: ended},
	killedRunning:  {shellReturned: killedReturned, writersLag: killedFlushing, finished: ended},
	returned:       {writersLag: flushing, finished: ended},
	killedReturned: {writersLag: killedFlushing, finished: ended},
	flushing:       {writersLag: flushing, finished: ended},
	killedFlushing: {writersLag: killedFlushing, finished: ended},
	ended:          {resultReturned: reported},
	reported:       {resultReturned: reported},
}

// onPipe reports whether the shell has the line and has not said that it runs it.
func (p phase) onPipe() bool { return p == sent || p == killedSent }

// prints reports whether what the shell's terminal shows is the command's output.
func (p phase) prints() bool { return p == running || p == killedRunning }

// killed reports whether the command is being killed, or cleaned up after that.
func (p phase) killed() bool {
	return p == killedSent || p == killedRunning || p == killedReturned || p == killedFlushing
}

// over reports whether the shell is back: no event can change how the command has ended.
func (p phase) over() bool { return p >= returned }

func (p phase) String() string {
	return [...]string{"none", "queued", "sent", "running", "killed sent", "killed running",
		"returned", "killed returned", "flushing", "killed flushing", "ended", "reported"}[p]
}

func (e event) String() string {
	return [...]string{"line sent", "output began", "line dropped", "shell returned", "kill began",
		"writers lag", "finished", "result returned"}[e]
}

// A shellPhase is how far a shell has got.
type shellPhase int

const (
	starting shellPhase = iota + 1 // it has not answered its first line
	ready                          // it is at its prompt, or has the session's command
	execed                         // exec has put another interactive shell in its place
	stopped                        // it was found stopped: its End markers may be forged
	gone                           // it has ended, or the host is lost
)

// A shellEvent moves a shell to another phase.
type shellEvent int

const (
	greeted      shellEvent = iota // it has answered, and is the session's
	execFound                      // a look has found another program in its place
	stopFound                      // a look has found it stopped
	processEnded                   // its process has ended, and its output has been read
	shellEvents
)

// shellTable is the table of shells. A look may be older than the end of the shell.
var shellTable = table[shellPhase, shellEvent]{
	starting: {greeted: ready, processEnded: gone},
	ready:    {execFound: execed, stopFound: stopped, processEnded: gone},
	execed:   {stopFound: stopped, processEnded: gone},
	stopped:  {stopFound: stopped, processEnded: gone},
	gone:     {stopFound: gone},
}

// takesCommands reports whether the shell has been greeted and has not ended. A shell that is about
// to be killed takes commands, too: they go on to the shell that replaces it.
func (p shellPhase) takesCommands() bool { return p == ready || p == execed || p == stopped }

func (p shellPhase) String() string {
	return [...]string{"none", "starting", "ready", "execed", "stopped", "gone"}[p]
}

func (e shellEvent) String() string {
	return [...]string{"greeted", "exec found", "stop found", "process ended"}[e]
}

// advanceLocked moves c to the phase that follows at e. It reports false if e cannot happen.
func (s *session) advanceLocked(c *command, e event) (ok bool) {
	before := c.phase
	if c.phase, ok = commandTable.next(before, e); !ok {
		s.logFault(before, e, "command", c.number)
	}
	return ok
}

// advanceShellLocked moves sh to the phase that follows at e.
func (s *session) advanceShellLocked(sh *shell, e shellEvent) {
	before, ok := sh.phase, false
	if sh.phase, ok = shellTable.next(before, e); !ok {
		s.logFault(before, e, "pid", sh.pid)
	}
}

func (s *session) logFault(phase, event fmt.Stringer, attrs ...any) {
	s.box.log.Error("the engine is at fault: an event that cannot happen", append(attrs,
		"session", s.id, "phase", phase.String(), "event", event.String())...)
}
