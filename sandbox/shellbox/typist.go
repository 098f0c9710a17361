package shellbox

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A typist writes to a terminal. A write to a terminal blocks while nobody reads it, longer than any context, so
// it is the typist's goroutine that blocks, and callers go on.
type typist struct {
	w    io.Writer
	mu   sync.Mutex
	more *sync.Cond
	todo []keys
	busy bool // in a write
	end  bool

	heard *atomic.Int64 // how much the terminal has shown
}

// keys are what is typed; paced, if the terminal is likely to echo it.
type keys struct {
	text  []byte
	paced bool
}

func newTypist(w io.Writer, heard *atomic.Int64) *typist {
	t := &typist{w: w, heard: heard}
	t.more = sync.NewCond(&t.mu)
	return t
}

// write has p typed after all that is to be typed already.
func (t *typist) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.todo = append(t.todo, keys{text: p})
	t.more.Signal()
}

// writePaced is write with each paceSize waiting for the echo of the one before, or echoLimit. A terminal whose echo is not read as fast as it is
// typed to keeps the echo back, and shows it behind what a program, started by the last line, prints (Linux: n_tty's echo buffer).
func (t *typist) writePaced(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.todo = append(t.todo, keys{p, true})
	t.more.Signal()
}

const (
	paceSize  = 2 << 10
	echoLimit = 20 * time.Millisecond
)

// interrupt has p typed next, and forgets what was to be typed: it was meant for a command that ends.
func (t *typist) interrupt(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.todo = []keys{{text: p}}
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
		err := t.press(p)
		t.mu.Lock()
		t.busy = false
		if err != nil {
			t.end = true // the reader learns of it too, and tells
		}
	}
}

// press types keys.
func (t *typist) press(k keys) error {
	if !k.paced {
		_, err := t.w.Write(k.text)
		return err
	}
	for text := range slices.Chunk(k.text, paceSize) {
		heard := t.heard.Load()
		if _, err := t.w.Write(text); err != nil {
			return err
		}
		for begin, pause := time.Now(), 50*time.Microsecond; t.heard.Load()-heard < int64(len(text)) && time.Since(begin) < echoLimit; pause *= 2 {
			time.Sleep(min(pause, time.Millisecond))
		}
	}
	return nil
}
