//go:build linux

package main

import (
	"io"
	"sync"
)

// An input is what has been taken from the client and not been written to the program. One goroutine writes; who brings more waits
// while there is much.
type input struct {
	mu     sync.Mutex
	change *sync.Cond
	queue  [][]byte
	queued int
	taken  int64 // so many bytes came from the client
	ends   int64 // after so many the input ends; -1: not known
	over   bool  // nothing is written any more
}

const inputMax = 64 << 10

func newInput() *input {
	i := &input{ends: -1}
	i.change = sync.NewCond(&i.mu)
	return i
}

// take takes p from a client that is there as long as current says so, and returns how much has been taken in all.
func (i *input) take(p []byte, current func() bool) (taken int64, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.queued >= inputMax && !i.over && current() {
		i.change.Wait()
	}
	if !current() {
		return 0, false
	}
	i.taken += int64(len(p))
	if !i.over { // else the program reads no more, and what is brought is dropped
		i.queue = append(i.queue, append([]byte(nil), p...))
		i.queued += len(p)
	}
	i.change.Broadcast()
	return i.taken, true
}

// end says after how many bytes the input ends.
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

// given reports whether the program has been given its input, up to that byte.
func (i *input) given(until int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.over || i.taken >= until && i.queued == 0
}

// wake has those who wait look whether they are still to.
func (i *input) wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.change.Broadcast()
}

// stop drops what is there.
func (i *input) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over, i.queue, i.queued = true, nil, 0
	i.change.Broadcast()
}

// drain writes to w until the input's end or stop, and then closes it.
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
