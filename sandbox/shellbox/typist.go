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
// and no context ends it. So a goroutine of the typist writes, and callers go on. The goroutine
// lives only while there is something to write, because most boxes are idle most of the time.
type typist struct {
	w       io.Writer
	piece   int // bytes written at once
	mu      sync.Mutex
	group   *sync.WaitGroup // counts the goroutine; nil before start
	queue   []byte
	queued  int64 // bytes that were ever to be written
	writing bool  // there is the goroutine
	stopped bool
}

func newTypist(w io.Writer, piece int) *typist { return &typist{w: w, piece: piece} }

// start makes the typist write until stop. The caller must call stop before it waits for group.
func (t *typist) start(on *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.group = on
	t.startLocked()
}

// startLocked starts the goroutine if there is need of it.
func (t *typist) startLocked() {
	if t.group != nil && !t.writing && !t.stopped && len(t.queue) > 0 {
		t.writing = true
		t.group.Go(t.run)
	}
}

// write queues text. It returns how many bytes were queued before it.
func (t *typist) write(text string) (offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	offset = t.queued
	t.queued += int64(len(text))
	t.queue = append(t.queue, text...)
	t.startLocked()
	return offset
}

// drop forgets the queue, and returns its length. One piece may still be written.
func (t *typist) drop() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.queue)
	t.queue = nil
	return n
}

// idle reports whether everything is written.
func (t *typist) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped || len(t.queue) == 0 && !t.writing
}

// stop has nothing more written. The goroutine ends when the write under way returns, because the
// process has been closed or will be.
func (t *typist) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// run writes the queue until it is empty.
func (t *typist) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) > 0 && !t.stopped {
		n := min(len(t.queue), t.piece)
		p := t.queue[:n:n]
		t.queue = t.queue[n:]
		t.mu.Unlock()
		_, err := t.w.Write(p)
		t.mu.Lock()
		if err != nil {
			t.stopped = true // the terminal's reader gets an error too, and reports it
		}
	}
	t.writing = false
	if len(t.queue) == 0 {
		t.queue = nil // a long command's
	}
}
