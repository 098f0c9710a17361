package shellbox

import (
	"io"
	"sync"
)

// A typist writes to a terminal. A write to a terminal blocks until somebody reads it, and no context ends that. So the
// typist's goroutine blocks, and callers go on.
type typist struct {
	w    io.Writer
	mu   sync.Mutex
	more *sync.Cond
	todo [][]byte
	busy bool // in a write
	end  bool
}

func newTypist(w io.Writer) *typist {
	t := &typist{w: w}
	t.more = sync.NewCond(&t.mu)
	return t
}

// write has p typed after everything that is waiting to be typed.
func (t *typist) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.todo = append(t.todo, p)
	t.more.Signal()
}

// interrupt has p typed next, and drops what was waiting: that was meant for the command that ends.
func (t *typist) interrupt(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.todo = [][]byte{p}
	t.more.Signal()
}

// idle reports whether all is typed.
func (t *typist) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.todo) == 0 && !t.busy
}

// stop ends the goroutine, once the write under way returns: the process has been closed, or will be.
func (t *typist) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = true
	t.more.Signal()
}

// run types until stop.
func (t *typist) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(t.todo) == 0 && !t.end {
			t.more.Wait()
		}
		if t.end {
			return
		}
		p := t.todo[0]
		t.todo = t.todo[1:]
		t.busy = true
		t.mu.Unlock()
		_, err := t.w.Write(p)
		t.mu.Lock()
		t.busy = false
		if err != nil {
			t.end = true // the terminal's reader gets an error too, and reports it
		}
	}
}
