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

// A typist writes to a terminal, or to the pipe of a shell. A write blocks until somebody reads,
// and no context ends that. So a goroutine of the typist's blocks, and callers go on. There is one
// only while there is something to write: most boxes are idle most of the time.
type typist struct {
	w     io.Writer
	piece int // bytes written at once
	mu    sync.Mutex
	on    *sync.WaitGroup // counts the goroutine; nil before start
	todo  []byte
	taken int64 // bytes that were ever to be written
	busy  bool  // there is the goroutine
	end   bool
}

func newTypist(w io.Writer, piece int) *typist { return &typist{w: w, piece: piece} }

// start has it write, from now on and until stop. Whoever waits for on calls stop before.
func (t *typist) start(on *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = on
	t.begin()
}

// begin starts the goroutine if there is need of it; t.mu is held.
func (t *typist) begin() {
	if t.on != nil && !t.busy && !t.end && len(t.todo) > 0 {
		t.busy = true
		t.on.Go(t.run)
	}
}

// write has text written after everything that is waiting to be written. It returns how many bytes
// come before it.
func (t *typist) write(text string) (offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	offset = t.taken
	t.taken += int64(len(text))
	t.todo = append(t.todo, text...)
	t.begin()
	return offset
}

// drop forgets what is waiting to be written, and returns how many bytes that was. A piece may
// still be under way.
func (t *typist) drop() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.todo)
	t.todo = nil
	return n
}

// idle reports whether all is written.
func (t *typist) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end || len(t.todo) == 0 && !t.busy
}

// stop ends the goroutine, once the write under way returns: the process has been closed, or will
// be. Nothing is written any more.
func (t *typist) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = true
}

// run writes all that there is.
func (t *typist) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.todo) > 0 && !t.end {
		n := min(len(t.todo), t.piece)
		p := t.todo[:n:n]
		t.todo = t.todo[n:]
		t.mu.Unlock()
		_, err := t.w.Write(p)
		t.mu.Lock()
		if err != nil {
			t.end = true // the terminal's reader gets an error too, and reports it
		}
	}
	t.busy = false
	if len(t.todo) == 0 {
		t.todo = nil // a long command's
	}
}
