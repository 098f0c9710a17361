package shellbox

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A command is one Execute, from the typing of its lines to the next prompt. Its fields are guarded by the session's mu.
type command struct {
	text     string
	typed    bool   // its lines have been handed to the typist
	started  bool   // its output has begun
	asked    bool   // the shell, at a lost prompt, has been asked for its status: what comes now is the echo of that question
	early    []byte // what came before the output's begin: mostly the lines' echo
	lines    []byte // as typed
	attempts int    // how often getting through to the shell was tried
	ahead    []byte // input that came before the lines were typed
	again    bool   // the lines are to be typed again at the next prompt
	once     bool   // the session is a job's: no fresh shell after it
	out      output
	tee      *tee
	began    time.Time
	active   time.Time // the last output or input
	turns    int64     // how often the shell had run when it got the interrupt key; 0: it has got none
	calls    int       // how many calls wait for it now

	answered identity // what waited when Input was last called
	inputAt  time.Time

	match   *piece        // what Until matched
	matched chan struct{} // signalled when match is set
	done    chan struct{} // closed at the end
	result  *sandbox.Result
	told    bool // a call has returned result
}

func newCommand(text string, once bool) *command {
	now := time.Now()
	c := &command{
		text: text, once: once, began: now, active: now,
		tee:     new(tee),
		matched: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	c.out.kept.Max = sandbox.DefaultMaxOutput // even if the first call asks for less: the next may ask for more
	if once {
		c.out.kept.Max = 4 << 10 // the spool has it all
	}
	return c
}

// send has the command typed.
func (c *command) send(t *typist, lines []byte) {
	c.typed = true
	c.lines = lines
	t.write(lines)
	if len(c.ahead) > 0 {
		t.write(c.ahead)
		c.ahead = nil
	}
}

// echoed takes what comes before the output's begin.
func (c *command) echoed(text []byte) {
	c.active = time.Now()
	c.early = append(c.early, text...)
	if cut := len(c.early) - 2*screenTail; cut > 0 {
		c.early = append(c.early[:0], c.early[cut+screenTail:]...)
	}
}

// unmarked begins and ends an output whose begin was never marked, because the shell's standard output is elsewhere (exec >file). The
// output is what came after the echo.
func (c *command) unmarked() {
	early := c.early
	last := c.lines[max(0, len(c.lines)-40):max(0, len(c.lines)-1)] // none if they were typed again
	if i := bytes.LastIndex(early, last); i >= 0 {
		early = bytes.TrimPrefix(early[i+len(last):], []byte("\r"))
		early = bytes.TrimPrefix(early, []byte("\n"))
	}
	c.begin()
	c.wrote(early)
}

func (c *command) begin() {
	c.started, c.early, c.lines = true, nil, nil
	c.active = time.Now()
}

func (c *command) wrote(text []byte) {
	c.active = time.Now()
	if p := c.out.write(text); p != nil {
		c.setMatch(p)
	}
}

func (c *command) setMatch(p *piece) {
	c.match = p
	select {
	case c.matched <- struct{}{}:
	default:
	}
}

func (c *command) end(r *sandbox.Result) {
	r.Duration = time.Since(c.began)
	c.result = r
	close(c.done)
}

// partial returns a Result of the unfinished command.
func (c *command) partial(state sandbox.State, kind sandbox.InputKind, max int) *sandbox.Result {
	p := c.out.take(max, false)
	return &sandbox.Result{State: state, Awaits: kind, Output: p.text, Omitted: p.omitted, Duration: time.Since(c.began)}
}

// final returns the ended command's Result. Only the first call gets the output.
func (c *command) final(max int) *sandbox.Result {
	r := *c.result
	p := c.out.take(max, true).trimTrace()
	if c.asked {
		p.text, _, _ = strings.Cut(p.text, "_ss_x") // the echo of initLines
	}
	c.out.shown = nil
	c.out.cleaner.Reset()
	r.Output, r.Omitted = p.text, p.omitted
	return &r
}

// A tee copies raw output to the writer of the call under way. Its lock is held during a write, so that after set(nil) no
// write is under way.
type tee struct {
	mu      sync.Mutex
	w       io.Writer
	writing atomic.Bool // a write is under way
}

func (t *tee) set(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.w = w
}

func (t *tee) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.w == nil {
		return
	}
	t.writing.Store(true)
	_, err := t.w.Write(p)
	t.writing.Store(false)
	if err != nil {
		t.w = nil
	}
}
