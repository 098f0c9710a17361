package shellbox

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// writerDelay is how long a caller's writer may block a call that is to return.
const writerDelay = time.Second

// teeMax is how many bytes a tee holds that its writer has not taken. More keeps the terminal's reader waiting, and so the command.
const teeMax = 64 << 10

// A tee hands a command's raw output to the writer of one call, from a goroutine of its own.
type tee struct {
	w       io.Writer
	mu      sync.Mutex
	change  *sync.Cond
	queue   []byte
	coming  int  // writes that are on their way
	full    bool // write is waiting for the writer
	ended   bool // nothing more comes
	over    bool // nothing more is written: w has failed, or has been given up
	lost    int64
	dropped bool          // w has been given up
	done    chan struct{} // closed when all is written, or over
}

func newTee(w io.Writer) *tee {
	t := &tee{w: w, done: make(chan struct{})}
	t.change = sync.NewCond(&t.mu)
	go t.run()
	return t
}

// expect announces a write: done is not closed before it.
func (t *tee) expect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coming++
}

// write has p written. It blocks while w takes nothing.
func (t *tee) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.coming--; t.change.Broadcast() }()
	for len(t.queue) >= teeMax && !t.over {
		t.full = true
		t.change.Wait()
	}
	t.full = false
	if t.over {
		t.lost += int64(len(p))
		return
	}
	t.queue = append(t.queue, p...)
}

// blocks reports whether w keeps the terminal's reader waiting.
func (t *tee) blocks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full
}

func (t *tee) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var p []byte
	for {
		for len(t.queue) == 0 && !(t.ended && t.coming == 0) && !t.over {
			t.change.Wait()
		}
		if t.over || len(t.queue) == 0 {
			break
		}
		p, t.queue = t.queue, p[:0]
		t.change.Broadcast()
		t.mu.Unlock()
		n, err := t.w.Write(p)
		t.mu.Lock()
		if t.over { // given up meanwhile
			t.lost += int64(len(p) - n)
			return
		}
		if err != nil {
			t.over, t.queue = true, nil
			t.change.Broadcast()
			break
		}
	}
	close(t.done)
}

// end says that nothing more comes. done is closed when all is written.
func (t *tee) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.change.Broadcast()
}

// drop gives w up: what it has not taken, and what comes, is lost to it.
func (t *tee) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.done:
		return
	default:
	}
	t.over, t.dropped = true, true
	t.lost += int64(len(t.queue))
	t.queue = nil
	t.change.Broadcast()
	close(t.done)
}

// err says what is lost to w.
func (t *tee) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.dropped {
		return nil
	}
	return fmt.Errorf("%w: the writer of Tee takes nothing: what it is writing, and %d bytes behind that, are lost to it", exec.ErrWaitDelay, t.lost)
}
