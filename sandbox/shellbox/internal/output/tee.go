package output

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/guard"
)

// WriterDelay is how long a caller's writer may block a call that is to return.
const WriterDelay = time.Second

// TeeMax is how many bytes a Tee holds that its writer has not taken. More keep the terminal's
// reader waiting, and so the command.
const TeeMax = 64 << 10

// A Tee hands a command's raw output to a caller's writer. It writes from a goroutine of its own,
// so a writer that blocks can be given up. The writer of Tee gets the output of one call, that of
// Follow or LogTo all output of the command.
//
// The methods may be called from several goroutines.
type Tee struct {
	option string // the option that names w, for errors
	w      io.Writer
	// closed when the writing has ended: w has got all, has failed, or was given up
	done chan struct{}

	mu       sync.Mutex
	changed  broadcast.Signal // of what follows
	queue    []byte
	expected int64       // bytes announced
	taken    int64       // bytes that w has got
	writing  int         // bytes of the Write under way
	since    time.Time   // when that Write began
	full     bool        // Write waits for w
	ended    bool        // nothing more is announced
	over     bool        // done is closed
	limit    *time.Timer // bounds each Write of w; nil: there is no bound
	err      error       // why w has not got all
}

// NewTee returns a Tee to w, which the caller has given to the option of that name. The Tee's
// goroutine ends after End or GiveUp.
func NewTee(option string, w io.Writer) *Tee {
	t := &Tee{option: option, w: w, done: make(chan struct{})}
	go t.run()
	return t
}

// Announce says that n bytes will be written.
func (t *Tee) Announce(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected += int64(n)
}

// Write queues p, which has been announced. It blocks while w takes nothing.
func (t *Tee) Write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) >= TeeMax && !t.over {
		t.full = true
		t.awaitLocked()
	}
	t.full = false
	if !t.over {
		t.queue = append(t.queue, p...)
		t.changed.Send()
	}
}

// Blocks reports whether w keeps the caller of Write waiting.
func (t *Tee) Blocks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full
}

// Done returns a channel that is closed when nothing more is written to w.
func (t *Tee) Done() <-chan struct{} { return t.done }

func (t *Tee) run() {
	// this is the error if w calls runtime.Goexit
	defer t.finish(fmt.Errorf("the writer of %s has ended its goroutine", t.option))
	for p, more := t.next(nil); more; p, more = t.next(p) {
		t.wrote(guard.Call("the writer of "+t.option, func() error {
			_, err := t.w.Write(p)
			return err
		}))
	}
}

// next returns what to write next. It reuses p, the piece before. It reports false when nothing
// more is to be written.
func (t *Tee) next(p []byte) (next []byte, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) == 0 && !t.over {
		if t.ended && t.taken == t.expected {
			t.finishLocked(nil)
			break
		}
		t.awaitLocked()
	}
	if t.over {
		return nil, false
	}
	next, t.queue = t.queue, p[:0]
	t.writing, t.since = len(next), time.Now()
	if t.limit != nil {
		t.limit.Reset(WriterDelay)
	}
	t.changed.Send()
	return next, true
}

// wrote records the end of a Write of w. A writer that has failed gets nothing more. Of its errors
// only a panic is reported.
func (t *Tee) wrote(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit != nil {
		t.limit.Stop()
	}
	if t.over { // w was given up during the write
		return
	}
	t.taken, t.writing = t.taken+int64(t.writing), 0
	if panicked := new(guard.PanicError); errors.As(err, &panicked) {
		t.finishLocked(err)
	} else if err != nil {
		t.finishLocked(nil)
	}
	t.changed.Send()
}

// End says that nothing more will be announced.
func (t *Tee) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.changed.Send()
}

// LimitWrites gives up w as soon as one of its Writes takes longer than WriterDelay.
func (t *Tee) LimitWrites() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit != nil {
		return
	}
	t.limit = time.AfterFunc(WriterDelay, t.GiveUp)
	if t.writing == 0 {
		t.limit.Stop()
	}
}

// GiveUp ends the writing to w, and loses what w has not got.
func (t *Tee) GiveUp() { t.finish(exec.ErrWaitDelay) }

// finish ends the writing because of err.
func (t *Tee) finish(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finishLocked(err)
}

func (t *Tee) finishLocked(err error) {
	if t.over {
		return
	}
	t.over, t.err, t.queue = true, err, nil
	t.changed.Send()
	close(t.done)
}

// awaitLocked unlocks t.mu until something changes.
func (t *Tee) awaitLocked() {
	changed := t.changed.Wait()
	t.mu.Unlock()
	<-changed
	t.mu.Lock()
}

// failure returns why w has not got all, and how much it has lost.
func (t *Tee) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != exec.ErrWaitDelay {
		return t.err
	}
	return fmt.Errorf("%w: the writer of %s takes nothing: what it is writing, and %d bytes "+
		"behind that, are lost to it",
		t.err, t.option, t.expected-t.taken-int64(t.writing))
}

// A Mark is how much output a Tee's writer must have got before a call returns.
type Mark struct {
	t  *Tee
	at int64
}

// Mark returns the mark of all that has been announced.
func (t *Tee) Mark() Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Mark{t, t.expected}
}

// Pending returns a channel that is closed when the writer may have got further. It returns nil if
// the writer has reached the mark, or never will.
func (m Mark) Pending() <-chan struct{} {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if m.t.over || m.t.taken >= m.at {
		return nil
	}
	return m.t.changed.Wait()
}

// Failure returns what is lost to the writer, as an error that is exec.ErrWaitDelay if the writer
// was given up.
func (m Mark) Failure() error { return m.t.failure() }

// GiveUp gives up the writer if it has not reached the mark.
func (m Mark) GiveUp() {
	if m.Pending() != nil {
		m.t.GiveUp()
	}
}

// GiveUpBlocked gives up those writers that have not reached their marks because a Write takes
// long. It reports whether there are any.
func GiveUpBlocked(marks []Mark) (any bool) {
	for _, m := range marks {
		m.t.mu.Lock()
		if !m.t.over && m.t.taken < m.at && m.t.writing > 0 &&
			time.Since(m.t.since) > WriterDelay/2 {
			m.t.finishLocked(exec.ErrWaitDelay)
			any = true
		}
		m.t.mu.Unlock()
	}
	return any
}
