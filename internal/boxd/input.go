//go:build linux

package main

import (
	"io"
	"sync"
)

// An input is a queue between the client and the program's standard input, its terminal or the pipe
// of its commands. One goroutine, drain, writes to the program. enqueue adds to the queue, and
// blocks while the queue is long.
type input struct {
	mu      sync.Mutex
	change  *sync.Cond
	queue   [][]byte
	queued  int
	taken   int64 // how many bytes have been received from the client
	endsAt  int64 // how many bytes there are in total; -1 if that is not known yet
	stopped bool  // nothing more is written to the program

	dropUntil int64 // what comes before this offset is dropped
	dropped   int   // how many bytes were dropped since resetDropped
}

const inputMax = 64 << 10

func newInput() *input {
	i := &input{endsAt: -1}
	i.change = sync.NewCond(&i.mu)
	return i
}

// enqueue adds p to the queue, and returns how many bytes have been received in total. It fails if
// current reports that the client is gone.
func (i *input) enqueue(p []byte, current func() bool) (taken int64, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.queued >= inputMax && !i.stopped && current() {
		i.change.Wait()
	}
	if !current() {
		return 0, false
	}
	begin := i.taken
	i.taken += int64(len(p))
	if drop := int(min(i.dropUntil-begin, int64(len(p)))); drop > 0 {
		i.dropped += drop
		p = p[drop:]
	}
	if !i.stopped && len(p) > 0 { // else the program no longer reads, and p is dropped
		i.queue = append(i.queue, append([]byte(nil), p...))
		i.queued += len(p)
	}
	i.change.Broadcast()
	return i.taken, true
}

// setEnd says that the input ends after total bytes.
func (i *input) setEnd(total int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endsAt = total
	i.change.Broadcast()
}

func (i *input) total() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.taken
}

// written reports whether the first until bytes have been written to the program.
func (i *input) written(until int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped || i.taken >= until && i.queued == 0
}

// drop drops what has not been written to the program of the first until bytes, including bytes
// that have not been received yet.
func (i *input) drop(until int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dropUntil = max(i.dropUntil, until)
	begin := i.taken // of the first chunk in the queue
	for _, p := range i.queue {
		begin -= int64(len(p))
	}
	for len(i.queue) > 0 && begin < until {
		p := i.queue[0]
		n := int(min(until-begin, int64(len(p))))
		if i.queue[0] = p[n:]; n == len(p) {
			i.queue = i.queue[1:]
		}
		i.queued -= n
		i.dropped += n
		begin += int64(n)
	}
	i.change.Broadcast()
}

// processed reports whether the first until bytes have been received, and have been written to the
// program or dropped.
func (i *input) processed(until int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped || i.taken-int64(i.queued) >= until
}

// resetDropped returns how many bytes drop has dropped since the last call.
func (i *input) resetDropped() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n, i.dropped = i.dropped, 0
	return n
}

// wake has each blocked enqueue check again whether its client is still there.
func (i *input) wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.change.Broadcast()
}

// stop drops the queue. Nothing more is written to the program.
func (i *input) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped, i.queue, i.queued = true, nil, 0
	i.change.Broadcast()
}

// drain writes the queue to w until the input's end or stop, and then closes w.
func (i *input) drain(w io.WriteCloser) {
	defer w.Close()
	for {
		i.mu.Lock()
		for len(i.queue) == 0 && !i.stopped && i.taken != i.endsAt {
			i.change.Wait()
		}
		if len(i.queue) == 0 {
			i.mu.Unlock()
			return
		}
		p := i.queue[0]
		i.queue = i.queue[1:]
		i.mu.Unlock()
		_, err := w.Write(p)
		i.mu.Lock()
		i.queued = max(0, i.queued-len(p))
		i.change.Broadcast()
		i.mu.Unlock()
		if err != nil { // the program no longer reads
			i.stop()
			return
		}
	}
}
