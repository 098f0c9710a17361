package shellbox

import (
	"io"
	"sync"
)

// How many bytes a typist writes at once. It can be stopped between two pieces.
const (
	keysPiece    = 1 << 10 // to a terminal
	commandPiece = 32 << 10
)

// A typist writes to a terminal, or to the pipe of a shell. A write blocks until somebody reads, and no context ends that. So the
// typist's goroutine blocks, and callers go on.
type typist struct {
	w     io.Writer
	piece int // bytes written at once
	mu    sync.Mutex
	more  *sync.Cond
	todo  []byte
	busy  bool // in a write
	end   bool
}

func newTypist(w io.Writer, piece int) *typist {
	t := &typist{w: w, piece: piece}
	t.more = sync.NewCond(&t.mu)
	return t
}

// write has text written after everything that is waiting to be written.
func (t *typist) write(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.todo = append(t.todo, text...)
	t.more.Broadcast()
}

// drop forgets what is waiting to be written, and returns how many bytes that was. A piece may still be under way.
func (t *typist) drop() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.todo)
	t.todo = nil
	t.more.Broadcast()
	return n
}

// idle reports whether all is written.
func (t *typist) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end || len(t.todo) == 0 && !t.busy
}

// stop ends the goroutine, once the write under way returns: the process has been closed, or will be.
func (t *typist) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = true
	t.more.Broadcast()
}

// run writes until stop.
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
		n := min(len(t.todo), t.piece)
		p := t.todo[:n:n]
		t.todo = t.todo[n:]
		t.busy = true
		t.mu.Unlock()
		_, err := t.w.Write(p)
		t.mu.Lock()
		t.busy = false
		if err != nil {
			t.end = true // the terminal's reader gets an error too, and reports it
		}
		t.more.Broadcast()
	}
}
