package shellbox

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
)

// writerDelay is how long a caller's writer may block a call that is to return.
const writerDelay = time.Second

// teeMax is how many bytes a tee holds that its writer has not taken. More keeps the terminal's
// reader waiting, and so the command.
const teeMax = 64 << 10

// A tee hands a command's raw output to a caller's writer, from a goroutine of its own: so a writer
// that blocks can be given up. That of Tee gets the output of one call, that of Follow or LogTo all
// of the command's.
type tee struct {
	option string // that w is of
	w      io.Writer
	// closed when nothing more is written: all is, or w has failed or been given up
	done chan struct{}

	mu       sync.Mutex
	changed  chan struct{} // closed, and made anew, when something has changed below
	queue    []byte
	expected int64       // bytes that have been announced
	taken    int64       // as many of them w has got
	writing  int         // bytes of the Write under way
	since    time.Time   // when that began
	full     bool        // write is waiting for w
	ended    bool        // nothing more is announced
	over     bool        // done is closed
	limit    *time.Timer // of each Write, if there is one
	err      error       // why w has not got all
}

func newTee(option string, w io.Writer) *tee {
	t := &tee{option: option, w: w, done: make(chan struct{}), changed: make(chan struct{})}
	go t.run()
	return t
}

// expect announces that n bytes will be written.
func (t *tee) expect(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected += int64(n)
}

// write has p written. It blocks while w takes nothing.
func (t *tee) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) >= teeMax && !t.over {
		t.full = true
		t.awaitLocked()
	}
	t.full = false
	if !t.over {
		t.queue = append(t.queue, p...)
		t.changeLocked()
	}
}

// blocks reports whether w keeps the terminal's reader waiting.
func (t *tee) blocks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full
}

func (t *tee) run() {
	// by runtime.Goexit
	defer t.finish(fmt.Errorf("the writer of %s has ended its goroutine", t.option))
	for p, more := t.next(nil); more; p, more = t.next(p) {
		t.wrote(guard.Call("the writer of "+t.option, func() error {
			_, err := t.w.Write(p)
			return err
		}))
	}
}

// next returns what is to be written next; p is what was written before. It reports false when
// nothing more is to be written.
func (t *tee) next(p []byte) (next []byte, more bool) {
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
		t.limit.Reset(writerDelay)
	}
	t.changeLocked()
	return next, true
}

// wrote takes the end of a Write. If w has failed, it gets nothing more; only a panic is told.
func (t *tee) wrote(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit != nil {
		t.limit.Stop()
	}
	if t.over { // given up meanwhile
		return
	}
	t.taken, t.writing = t.taken+int64(t.writing), 0
	if panicked := new(guard.PanicError); errors.As(err, &panicked) {
		t.finishLocked(err)
	} else if err != nil {
		t.finishLocked(nil)
	}
	t.changeLocked()
}

// end says that nothing more is announced. done is closed when all is written.
func (t *tee) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.changeLocked()
}

// hurry has w given up as soon as one Write takes longer than writerDelay.
func (t *tee) hurry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit != nil {
		return
	}
	t.limit = time.AfterFunc(writerDelay, t.drop)
	if t.writing == 0 {
		t.limit.Stop()
	}
}

// drop gives w up: what it has not taken, and what comes, is lost to it.
func (t *tee) drop() { t.finish(exec.ErrWaitDelay) }

// finish has nothing more written, because of err.
func (t *tee) finish(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finishLocked(err)
}

func (t *tee) finishLocked(err error) {
	if t.over {
		return
	}
	t.over, t.err, t.queue = true, err, nil
	t.changeLocked()
	close(t.done)
}

func (t *tee) changeLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// awaitLocked unlocks t until something changes.
func (t *tee) awaitLocked() {
	changed := t.changed
	t.mu.Unlock()
	<-changed
	t.mu.Lock()
}

// failure says what is lost to w.
func (t *tee) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != exec.ErrWaitDelay {
		return t.err
	}
	return fmt.Errorf("%w: the writer of %s takes nothing: what it is writing, and %d bytes "+
		"behind that, are lost to it",
		t.err, t.option, t.expected-t.taken-int64(t.writing))
}

// A mark is how much of a tee's output its writer is to have got before a call returns.
type mark struct {
	t  *tee
	at int64
}

// mark returns the mark of all that has been announced.
func (t *tee) mark() mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return mark{t, t.expected}
}

// missing returns what is closed when w may have got further; nil if the mark is reached, or never
// will be.
func (m mark) missing() <-chan struct{} {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if m.t.over || m.t.taken >= m.at {
		return nil
	}
	return m.t.changed
}

// drop gives the writer up if it has not reached the mark.
func (m mark) drop() {
	if m.missing() != nil {
		m.t.drop()
	}
}

// dropBlocked gives those up that have not reached their marks because a Write takes long. It
// reports whether there are any.
func dropBlocked(marks []mark) (any bool) {
	for _, m := range marks {
		m.t.mu.Lock()
		if !m.t.over && m.t.taken < m.at && m.t.writing > 0 &&
			time.Since(m.t.since) > writerDelay/2 {
			m.t.finishLocked(exec.ErrWaitDelay)
			any = true
		}
		m.t.mu.Unlock()
	}
	return any
}
