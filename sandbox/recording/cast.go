package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// An asciicast v2 (docs.asciinema.org/manual/asciicast/v2) is a header and events: lines of JSON.

// A cast writes an asciicast from a goroutine of its own. Events wait in pending.
type cast struct {
	w          io.Writer
	closer     io.Closer // nil: w stays open
	title      string
	rows, cols int
	began      time.Time
	limit      time.Duration // how long a Write or a Close may take: patience, except in tests
	closing    sync.Once

	mu      sync.Mutex
	pending batch
	since   time.Time     // since when the goroutine has not taken what is pending
	ended   bool          // no more events come
	over    bool          // nothing more is written
	err     error         // why it is over early
	wake    chan struct{} // has an element when the goroutine is to look at what is pending
	taken   chan struct{} // closed, and made anew, when the goroutine has taken what was pending
	done    chan struct{} // closed when it is over
}

// A batch is events that are to be written, with their texts in one slice.
type batch struct {
	events []event
	text   []byte
}

// An event of a cast.
type event struct {
	at    time.Duration // since the cast began
	track *track
	code  byte // the asciicast's, or shownLine
	n     int  // bytes of text
}

const (
	// patience is how long a Write or a Close may take before the writer is given up.
	patience = 10 * time.Second
	// pendingMax is how many bytes of text may wait before those who add events wait too.
	pendingMax = 4 << 20
	// roomTime is how long one who adds an event waits for room. It is less than the second after
	// which a writer of Follow that blocks is an error of the calls.
	roomTime = 500 * time.Millisecond
	// batchTime is when a batch is written, after its first event. Output that comes within it is
	// one event.
	batchTime = 10 * time.Millisecond
	// batchMax is how many bytes of text are written at once, without waiting. An event has no
	// more.
	batchMax = 256 << 10
)

// newCast begins the cast of a terminal. close ends it, and closes closer if that is not nil.
func newCast(w io.Writer, closer io.Closer, title string, rows, cols int) *cast {
	c := &cast{
		w: w, closer: closer, title: title, rows: rows, cols: cols, began: time.Now(),
		limit: patience,
		wake:  make(chan struct{}, 1), taken: make(chan struct{}), done: make(chan struct{}),
	}
	go c.run()
	return c
}

// add adds an event. If c is nil, it does nothing.
func add[T string | []byte](c *cast, t *track, code byte, text T) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending.text) >= pendingMax && !c.over {
		c.awaitLocked(min(c.limit, roomTime))
	}
	if c.over || c.ended {
		return
	}
	before := c.pending
	if len(before.events) == 0 {
		c.since = time.Now()
	}
	c.pending.append(event{time.Since(c.began), t, code, len(text)})
	c.pending.text = append(c.pending.text, text...)
	if len(before.events) == 0 || len(before.text) < batchMax && len(c.pending.text) >= batchMax {
		c.wakeLocked()
	}
}

// append adds an event, or makes the last one longer if both are output of the same track.
func (b *batch) append(e event) {
	if last := len(b.events) - 1; e.code == 'o' && last >= 0 {
		if l := &b.events[last]; l.code == 'o' && l.track == e.track && e.at-l.at < batchTime &&
			l.n+e.n <= batchMax {
			l.n += e.n
			return
		}
	}
	b.events = append(b.events, e)
}

// wakeLocked makes the goroutine look at what is pending.
func (c *cast) wakeLocked() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// awaitLocked waits at most for d until the goroutine takes what is pending. It unlocks c.mu while
// it waits. If the goroutine has taken nothing for as long as the limit, the writer is given up.
func (c *cast) awaitLocked(d time.Duration) {
	taken := c.taken
	c.mu.Unlock()
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-taken:
	case <-c.done:
	case <-late.C:
	}
	c.mu.Lock()
	if time.Since(c.since) >= c.limit {
		c.stopLocked(fmt.Errorf("%w: the recording's writer has taken nothing for %v, and gets "+
			"nothing "+
			"more", exec.ErrWaitDelay, c.limit))
	}
}

// stopLocked ends the writing, early if err is not nil.
func (c *cast) stopLocked(err error) {
	if c.over {
		return
	}
	c.over, c.err = true, err
	c.pending = batch{}
	close(c.done)
}

// run writes the events. It is the cast's goroutine.
func (c *cast) run() {
	out := c.header()
	var view castView
	var taken batch
	for c.write(&out) && c.gather() && c.takePending(&taken) {
		text := taken.text
		for _, e := range taken.events {
			out = view.append(out, e, text[:e.n])
			text = text[e.n:]
			if len(out) >= batchMax && !c.write(&out) {
				return
			}
		}
	}
}

// gather waits until what is pending is to be written, so that a program that prints much does not
// have each piece written by itself. It reports false if nothing more is to be written.
func (c *cast) gather() bool {
	for {
		wait, any := c.dueIn()
		var late <-chan time.Time
		if any {
			if wait <= 0 {
				return true
			}
			late = time.After(wait)
		}
		select {
		case <-c.wake:
		case <-late:
		case <-c.done:
			return false
		}
	}
}

// dueIn returns how long what is pending may still wait. any is false if nothing is pending.
func (c *cast) dueIn() (wait time.Duration, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended || len(c.pending.text) >= batchMax:
		return 0, true
	case len(c.pending.events) == 0:
		return 0, false
	}
	return c.pending.events[0].at + batchTime - time.Since(c.began), true
}

// header returns the first line.
func (c *cast) header() []byte {
	line, _ := json.Marshal(struct {
		Version   int               `json:"version"`
		Width     int               `json:"width"`
		Height    int               `json:"height"`
		Timestamp int64             `json:"timestamp"`
		Title     string            `json:"title"`
		Env       map[string]string `json:"env"`
	}{2, c.cols, c.rows, c.began.Unix(), c.title, map[string]string{"TERM": "xterm"}})
	return append(line, '\n')
}

// takePending exchanges b, which has been written, for what is pending. It reports false if nothing
// more is to be written.
func (c *cast) takePending(b *batch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	*b, c.pending = c.pending, batch{b.events[:0], b.text[:0]}
	c.since = time.Now()
	if c.ended && len(b.events) == 0 {
		c.stopLocked(nil)
	}
	close(c.taken)
	c.taken = make(chan struct{})
	return !c.over
}

// write writes the lines of out, if there are any, and empties out. It reports false if nothing
// more is to be written.
func (c *cast) write(out *[]byte) bool {
	var err error
	if len(*out) > 0 {
		err = guarded(func() error {
			_, err := c.w.Write(*out)
			return err
		})
		*out = (*out)[:0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.stopLocked(fmt.Errorf("recording: %w", err))
	}
	return !c.over
}

// guarded calls f, a method of the caller's writer, and returns a panic of it as an error. Here, on
// the cast's goroutine, it would end the process.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the recording's writer panicked: %v", v)
		}
	}()
	return f()
}

// close waits until all is written, and closes the writer if the cast owns it. A writer that blocks
// is given up. Closing again does nothing.
func (c *cast) close() {
	if c == nil {
		return
	}
	c.closing.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended = true; len(c.pending.events) == 0 {
			c.since = time.Now()
		}
		c.wakeLocked()
		for !c.over {
			c.awaitLocked(c.limit)
		}
		if c.closer != nil {
			c.err = errors.Join(c.err, c.closeWriterLocked())
		}
	})
}

// closeWriterLocked closes the writer. While it does, c.mu is unlocked.
func (c *cast) closeWriterLocked() error {
	limit := c.limit
	c.mu.Unlock()
	defer c.mu.Lock()
	closed := make(chan error, 1)
	go func() { closed <- guarded(c.closer.Close) }()
	select {
	case err := <-closed:
		return err
	case <-time.After(limit):
		return fmt.Errorf("%w: the recording's writer does not close within %v", exec.ErrWaitDelay,
			limit)
	}
}

func (c *cast) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
