package session

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/waiting"
)

// A command is one Execute, or a job's command. The session's mu guards its fields.
type command struct {
	text     string
	number   int64 // of the box's commands, for the log
	logged   bool  // its end has been logged
	isJob    bool  // the session is a job's, and starts no fresh shell
	quiet    bool  // it is the engine's, and the session's users know nothing of it
	phase    phase.Command
	sh       *shell // the shell that has got the line
	seq      int    // the number of the line, or unknownSeq
	tries    int    // how often the line was sent
	repaired bool   // after a dialect.Repair

	sentAt  time.Time // when that was, the last time
	watched int       // the tries that a watch was begun for
	begunAt time.Time // when its Begin marker came
	asked   bool      // the shell was asked for its status while the command runs
	cut     bool      // an interrupt has cut a line: the shell waits for its rest

	offset int64 // of the line on the shell's pipe; -1: the shell was started for the command

	endsAt int64 // bytes of the terminal's output up to the End marker; 0: there was none

	out     output.Output
	tees    []*output.Tee // of the calls, and those of follows
	follows []*output.Tee // of Follow, or of LogTo
	spool   *output.Spool // a job's, for all of the output
	printed int64         // bytes of output
	began   time.Time
	// when the command before ended: what this command has started is younger
	startedAfter time.Time
	active       time.Time // of the last output or input

	background      int    // the shell's $! when the command began
	typedAhead      string // input that came before the command began
	typed           int    // bytes of input
	interruptTyped  bool   // the input held an interrupt key
	terminalReplied bool   // showLocked has answered a query

	calls         int              // under way
	question      waiting.Question // what the command waits for
	told          told             // the last question that a call has returned with MayGoOn
	lastWait      proc.Wait        // who waited when the question was found
	printedAtLine int64            // printed when a line was last typed; -1: no line was
	inputDue      time.Time        // until then lastWait may not have got what was typed

	changed broadcast.Signal // any call should look again
	begun   broadcast.Signal // sent with the Begin marker
	done    chan struct{}    // closed when ended
	result  *sandbox.Result
	lost    error // why there is no result although it may have run
}

// unknownSeq is the seq of a command that was taken over by Attach and whose line's number is not
// known: the next marker of the shell is about it.
const unknownSeq = 0

// newCommand returns a command that a caller has given, perhaps in a file of Windows.
func newCommand(text string, isJob bool) *command {
	now := time.Now()
	text = strings.ReplaceAll(text, "\r\n", "\n")
	c := &command{text: text, phase: phase.Queued, isJob: isJob, began: now, active: now,
		done: make(chan struct{})}
	// even if the first call asks for less: the next may ask for more
	keep := sandbox.DefaultMaxOutput
	if isJob {
		keep = 0 // the spool has all: see job.newCall
	}
	c.out = output.New(keep)
	return c
}

// addOutputLocked adds raw output.
func (c *command) addOutputLocked(text []byte) {
	c.active = time.Now()
	c.printed += int64(len(text))
	c.out.Write(text)
	wake := c.question.Certainty != waiting.Unasked || c.out.Matched()
	c.question = waiting.Question{}
	if wake {
		c.changed.Send()
	}
}

// follow has each writer get all of the command's output.
func (c *command) follow(writers []io.Writer) {
	option := "Follow"
	if c.isJob {
		option = "LogTo"
	}
	for _, w := range writers {
		c.follows = append(c.follows, output.NewTee(option, w))
	}
	c.tees = append(c.tees, c.follows...)
}

// addCallLocked begins a call about the command.
func (c *command) addCallLocked(w *call) {
	c.calls++
	c.question = waiting.Question{}
	c.changed.Send()
	w.view = c.out.Open(w.o.MaxOutput, w.o.Until)
	if w.o.Tee == nil {
		return
	}
	w.tee = output.NewTee("Tee", w.o.Tee)
	c.tees = append(c.tees, w.tee)
	if c.phase.Killed() {
		w.tee.LimitWrites()
	}
}

// removeCallLocked ends a call about the command. Its writers may have some output still to get.
func (c *command) removeCallLocked(w *call) {
	c.calls--
	c.out.Close(w.view)
	if !c.isJob { // the job's end, and not each Until, waits for the writers of LogTo
		for _, t := range c.follows {
			w.pending = append(w.pending, t.Mark())
		}
	}
	if w.tee != nil {
		w.tee.End()
		w.pending = append(w.pending, w.tee.Mark())
		c.tees = slices.DeleteFunc(slices.Clone(c.tees), func(t *output.Tee) bool {
			return t == w.tee
		})
	}
}

// limitWriters gives up callers' writers that block.
func (c *command) limitWriters() {
	for _, t := range slices.Concat(c.tees, c.follows) {
		t.LimitWrites()
	}
}

// endTees says that no more output comes.
func (c *command) endTees() {
	for _, t := range c.tees {
		t.End()
	}
	c.tees = nil
}

// blocksReader reports whether a caller's writer keeps the terminal's reader waiting.
func (c *command) blocksReader() bool {
	for _, t := range c.tees {
		if t.Blocks() {
			return true
		}
	}
	return false
}

// completeLocked records the end of the command. r is nil if the command has never run.
func (c *command) completeLocked(r *sandbox.Result) {
	if r != nil {
		r.Duration = time.Since(c.began)
	}
	c.endTees()
	c.result, c.question = r, waiting.Question{}
	close(c.done)
	c.changed.Send()
}

// Abridged returns command quoted, short enough for an error message.
func Abridged(command string) string {
	if len(command) > 60 {
		command = command[:57] + "..."
	}
	return fmt.Sprintf("%q", command)
}
