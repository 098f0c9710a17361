//go:build linux

package main

import (
	"io"
	"sync"
)

// An input is a queue between the client and the program's standard input, its terminal or the pipe
// of its commands. One goroutine, drain, writes to the program; take, which adds to the queue,
// blocks while the queue is long.
type input struct {
	mu     sync.Mutex
	change *sync.Cond
	queue  [][]byte
	queued int
	taken  int64 // how many bytes have come from the client
	ends   int64 // how many bytes there are in all; -1 while that is not known
	over   bool  // nothing more is written to the program

	dropUntil int64 // what comes before this offset is not for the program any more
	dropped   int   // so many bytes were dropped
}

const inputMax = 64 << 10

func newInput() *input {
	i := &input{ends: -1}
	i.change = sync.NewCond(&i.mu)
	return i
}

// take adds p to the queue, and returns how many bytes have been taken in all. It fails once
// current reports that the client is gone.
func (i *input) take(p []byte, current func() bool) (taken int64, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.queued >= inputMax && !i.over && current() {
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
	if !i.over && len(p) > 0 { // else the program reads no more, and p is dropped
		i.queue = append(i.queue, append([]byte(nil), p...))
		i.queued += len(p)
	}
	i.change.Broadcast()
	return i.taken, true
}

// end says that the input ends after total bytes.
func (i *input) end(total int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ends = total
	i.change.Broadcast()
}

func (i *input) total() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.taken
}

// given reports whether the first until bytes have been written to the program.
func (i *input) given(until int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.over || i.taken >= until && i.queued == 0
}

// drop drops what has not been written to the program of the first until bytes, those that are
// still to come too.
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

// past reports whether the first until bytes have come, and have been written to the program or
// dropped.
func (i *input) past(until int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.over || i.taken-int64(i.queued) >= until
}

// takeDropped returns how many bytes drop has dropped since it was called last.
func (i *input) takeDropped() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n, i.dropped = i.dropped, 0
	return n
}

// wake has every blocked take look again whether its client is still there.
func (i *input) wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.change.Broadcast()
}

// stop drops the queue: nothing more is written to the program.
func (i *input) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over, i.queue, i.queued = true, nil, 0
	i.change.Broadcast()
}

// drain writes the queue to w until the input's end or stop, and then closes w.
func (i *input) drain(w io.WriteCloser) {
	defer w.Close()
	for {
		i.mu.Lock()
		for len(i.queue) == 0 && !i.over && i.taken != i.ends {
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
		if err != nil { // the program reads no more
			i.stop()
			return
		}
	}
}
