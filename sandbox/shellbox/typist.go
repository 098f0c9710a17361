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

// A typist writes to a terminal, or to the pipe of a shell. A write blocks until somebody reads, and no context ends that. So a goroutine of the typist's
// blocks, and callers go on. There is one from the first write on: a new one for each would have its stack grow each time, while the command waits.
type typist struct {
	w      io.Writer
	piece  int // bytes written at once
	mu     sync.Mutex
	change sync.Cond       // todo has grown, or the end
	on     *sync.WaitGroup // counts the goroutine; nil before start
	todo   []byte
	taken  int64 // bytes that were ever to be written
	runs   bool  // there is the goroutine
	busy   bool  // it writes
	end    bool
}

func newTypist(w io.Writer, piece int) *typist {
	t := &typist{w: w, piece: piece}
	t.change.L = &t.mu
	return t
}

// start has it write, from now on and until stop. Whoever waits for on calls stop before.
func (t *typist) start(on *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = on
	t.begin()
}

// begin has what there is written; t.mu is held.
func (t *typist) begin() {
	if t.on == nil || t.end || len(t.todo) == 0 {
		return
	}
	if !t.runs {
		t.runs = true
		t.on.Go(t.run)
	}
	t.change.Signal()
}

// write has text written after everything that is waiting to be written. It returns how many bytes come before it.
func (t *typist) write(text string) (offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	offset = t.taken
	t.taken += int64(len(text))
	t.todo = append(t.todo, text...)
	t.begin()
	return offset
}

// drop forgets what is waiting to be written, and returns how many bytes that was. A piece may still be under way.
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

// stop ends the goroutine, once the write under way returns: the process has been closed, or will be. Nothing is written any more.
func (t *typist) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = true
	t.change.Signal()
}

// run writes all that comes.
func (t *typist) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(t.todo) == 0 && !t.end {
			t.todo = nil // a long command's
			t.change.Wait()
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
	}
}
