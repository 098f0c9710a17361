package streams

import (
	"context"
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// A Typist writes to a terminal, or to the pipe of a shell. A write blocks until a program reads,
// and no context ends it. So a goroutine of the Typist writes, and callers go on. The goroutine
// lives only while there is something to write, because most boxes are idle most of the time. What
// a file takes without waiting needs no goroutine.
type Typist struct {
	w       io.Writer
	now     func(text string) int // see nowWriter; nil: w may have to wait
	piece   int                   // bytes written at once
	mu      sync.Mutex
	group   *sync.WaitGroup // counts the goroutine; nil before Start
	queue   []byte
	queued  int64 // all bytes that were ever queued
	writing bool  // the goroutine runs
	stopped bool
	rested  broadcast.Signal // sent when there is nothing more to write
}

// NewTypist returns a Typist that writes to w, piece bytes at once. It can be stopped between two
// pieces.
func NewTypist(w io.Writer, piece int) *Typist {
	return &Typist{w: w, now: nowWriter(w), piece: piece}
}

// Start makes the Typist write until Stop. The caller must call Stop before it waits for group.
func (t *Typist) Start(group *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.group = group
	t.startLocked()
}

// startLocked starts the goroutine if there is something to write.
func (t *Typist) startLocked() {
	if t.group != nil && !t.writing && !t.stopped && len(t.queue) > 0 {
		t.writing = true
		t.group.Go(t.run)
	}
}

// Write queues text. It returns how many bytes were queued before it.
func (t *Typist) Write(text string) (offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	offset = t.queued
	t.queued += int64(len(text))
	if t.now != nil && t.group != nil && !t.stopped && !t.writing && len(t.queue) == 0 {
		text = text[t.now(text):]
	}
	t.queue = append(t.queue, text...)
	t.startLocked()
	return offset
}

// Skip counts n bytes as written that somebody else has written.
func (t *Typist) Skip(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queued += n
}

// Drop forgets the queue, and returns its length. One piece may still be written.
func (t *Typist) Drop() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.queue)
	t.queue = nil
	return n
}

// Idle reports whether everything is written.
func (t *Typist) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.idleLocked()
}

func (t *Typist) idleLocked() bool { return t.stopped || len(t.queue) == 0 && !t.writing }

// AwaitIdle waits until everything is written. An error is ctx's.
func (t *Typist) AwaitIdle(ctx context.Context) error {
	for {
		t.mu.Lock()
		idle, rested := t.idleLocked(), t.rested.Wait()
		t.mu.Unlock()
		if idle {
			return nil
		}
		select {
		case <-rested:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
}

// Stop ends the writing. The goroutine ends when the write under way returns: the process has been
// closed, or will be.
func (t *Typist) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.rested.Send()
}

// run writes the queue until it is empty.
func (t *Typist) run() {
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
	t.rested.Send()
	if len(t.queue) == 0 {
		t.queue = nil // a long command's
	}
}
