//go:build linux

package main

import (
	"bytes"
	"io"
	"sync"
)

// An input is a queue between the clients and the program's standard input, its terminal or the
// pipe of its commands. One goroutine, drain, writes to the program. enqueue adds to the queue.
type input struct {
	mu      sync.Mutex
	change  *sync.Cond
	queue   []piece
	queued  int
	taken   int64   // how many bytes have been received from all clients
	ends    *source // the input ends with endsAt bytes of it; nil if that is not known yet
	endsAt  int64
	stopped bool // nothing more is written to the program
	dropped int  // how many bytes were dropped since resetDropped
	line    bool // in a terminal's usual modes, what was received last ends a line
	quoted  bool // there was a key that quotes the next one
}

// A source is one owner's part of an input. Its offsets count what the owner has sent, from what
// there was in total when the owner began.
type source struct {
	taken     int64 // how many bytes have been received
	dropUntil int64 // what comes before this offset is dropped
}

// A piece is a part of the queue.
type piece struct {
	text []byte
	from *source
	at   int64 // the source's offset of its first byte
}

// source returns a source of an owner that begins.
func (i *input) source() *source {
	i.mu.Lock()
	defer i.mu.Unlock()
	return &source{taken: i.taken}
}

const inputMax = 64 << 10

func newInput() *input {
	i := &input{}
	i.change = sync.NewCond(&i.mu)
	return i
}

// enqueue adds p, which has come from the attachment a, to the queue. It returns how many bytes the
// source has sent in total. It fails if a has ended. If a's channel is closed, enqueue does not
// wait for the queue to get shorter: no more comes than the channel's window.
func (i *input) enqueue(from *source, p []byte, a *attachment) (taken int64, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.queued >= inputMax && !i.stopped && !a.closed.Load() && !a.hasEnded() {
		i.change.Wait()
	}
	if a.hasEnded() {
		return 0, false
	}
	if len(p) > 0 {
		i.line = p[len(p)-1] == '\n'
		i.quoted = i.quoted || bytes.IndexByte(p, quoteKey) >= 0
	}
	begin := from.taken
	i.taken += int64(len(p))
	from.taken += int64(len(p))
	if drop := min(from.dropUntil-begin, int64(len(p))); drop > 0 {
		i.dropped += int(drop)
		p, begin = p[drop:], begin+drop
	}
	if !i.stopped && len(p) > 0 { // else the program no longer reads, and p is dropped
		i.queue = append(i.queue, piece{append([]byte(nil), p...), from, begin})
		i.queued += len(p)
	}
	i.change.Broadcast()
	return from.taken, true
}

// quoteKey is the usual VLNEXT of a terminal, ^V. After it, a newline ends no line.
const quoteKey = 'V' & 0x1f

// wholeLines returns how many bytes have been received. ok reports that they are whole lines and
// have all been written to the program.
func (i *input) wholeLines() (total int64, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.taken, i.queued == 0 && !i.stopped && (i.taken == 0 || i.line && !i.quoted)
}

// setEnd says that the input ends after total bytes of a source, and what has come from the others
// until then. The first end counts.
func (i *input) setEnd(from *source, total int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ends == nil {
		i.ends, i.endsAt = from, total
	}
	i.change.Broadcast()
}

func (i *input) total() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.taken
}

// received returns how many bytes a source has sent.
func (i *input) received(from *source) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return from.taken
}

// written reports whether the first until bytes of a source have been written to the program.
func (i *input) written(from *source, until int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped || from.taken >= until && i.queued == 0
}

// drop drops what has not been written to the program of the first until bytes of a source,
// including bytes that have not been received yet.
func (i *input) drop(from *source, until int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	from.dropUntil = max(from.dropUntil, until)
	var rest []piece
	for _, p := range i.queue {
		if n := min(until-p.at, int64(len(p.text))); p.from == from && n > 0 {
			p.text, p.at = p.text[n:], p.at+n
			i.queued -= int(n)
			i.dropped += int(n)
		}
		if len(p.text) > 0 {
			rest = append(rest, p)
		}
	}
	i.queue = rest
	i.change.Broadcast()
}

// processed reports whether the first until bytes of a source have been received, and have been
// written to the program or dropped.
func (i *input) processed(from *source, until int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped || from.taken >= until && i.unwrittenLocked(from, until) == 0
}

// unwrittenLocked returns how many of the first until bytes of a source have not been written: they
// are in the queue, or are being written.
func (i *input) unwrittenLocked(from *source, until int64) (n int64) {
	waiting := 0
	for _, p := range i.queue {
		waiting += len(p.text)
		if p.from == from {
			n += max(0, min(until-p.at, int64(len(p.text))))
		}
	}
	return n + int64(i.queued-waiting) // a piece that is being written may be of any source
}

// resetDropped returns how many bytes drop has dropped since the last call.
func (i *input) resetDropped() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n, i.dropped = i.dropped, 0
	return n
}

// wake makes each blocked enqueue check whether its client is still there.
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
		for len(i.queue) == 0 && !i.stopped && (i.ends == nil || i.ends.taken < i.endsAt) {
			i.change.Wait()
		}
		if len(i.queue) == 0 {
			i.stopped = true // what another client sends later is dropped
			i.change.Broadcast()
			i.mu.Unlock()
			return
		}
		p := i.queue[0].text
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

// sources are an owner's inputs of a program.
type sources struct{ in, commands *source }

// sourcesOf returns the inputs of an attachment's owner.
func (p *program) sourcesOf(a *attachment) sources { return p.sourceOf(a.owner) }

// sourceOf returns an owner's inputs.
func (p *program) sourceOf(o *owner) sources {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, known := p.sources[o]
	if !known {
		from.in = p.in.source()
		if p.commands != nil {
			from.commands = p.commands.source()
		}
		p.sources[o] = from
	}
	return from
}
