package shellbox

import "fmt"

// A command's life is a walk through phases. Events move it from one phase to the next, and the
// table transitions holds every move that there is:
//
//	queued -> sent -> running -> returned -> flushing -> ended -> reported
//
// A command that a shell has not taken goes back from sent to queued. A command that is killed
// takes the same way through the killed phases. Steps may be left out: a shell may end before its
// command's output begins, and most commands have no writers to wait for.

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
	flushing                        // over, but for the writers of Follow or LogTo
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

// transitions holds the phase that follows a phase at an event. 0: in that phase the event cannot
// happen.
//
// A queued command is not killed: it finishes without a Result. A command whose shell has returned
// is not killed either: only its writers are given less time.
var transitions = [...][events]phase{
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

// next returns the phase that follows p at e. It reports false if e cannot happen in p.
func (p phase) next(e event) (phase, bool) {
	if p <= 0 || int(p) >= len(transitions) {
		return p, false
	}
	if q := transitions[p][e]; q != 0 {
		return q, true
	}
	return p, false
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
	names := [...]string{"none", "queued", "sent", "running", "killed sent", "killed running",
		"returned", "killed returned", "flushing", "killed flushing", "ended", "reported"}
	if p < 0 || int(p) >= len(names) {
		return fmt.Sprintf("phase %d", int(p))
	}
	return names[p]
}

func (e event) String() string {
	names := [...]string{"line sent", "output began", "line dropped", "shell returned",
		"kill began", "writers lag", "finished", "result returned"}
	if e < 0 || int(e) >= len(names) {
		return fmt.Sprintf("event %d", int(e))
	}
	return names[e]
}

// advanceLocked moves c to the phase that follows at e. If e cannot happen in c's phase, it changes
// nothing, tells the log, and reports false.
func (s *session) advanceLocked(c *command, e event) bool {
	next, ok := c.phase.next(e)
	if !ok {
		s.box.log.Error("the engine is at fault: an event that cannot happen", "session", s.id,
			"command", c.number, "phase", c.phase.String(), "event", e.String())
	}
	c.phase = next
	return ok
}
