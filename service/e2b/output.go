package e2b

import (
	"context"
	"sync"
	"time"
	"unsafe"

	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/e2b"
)

// maxKept bounds the output of a process that is kept, in bytes: what no reader has been sent, and
// what the slowest reader has not.
const maxKept = 1 << 20

// patience is how long a process and its other readers wait for a reader that is slower than they.
const patience = 5 * time.Second

// An output is what a process has printed, for any number of readers.
//
// If nobody reads, the process goes on, and the last maxKept bytes are kept for the next reader. If
// somebody does, the process waits for the readers. A reader that holds up another one for longer
// than patience is dropped, and told so.
type output struct {
	mu      sync.Mutex
	changed broadcast.Signal
	events  []*e2b.DataEvent
	first   int // the number of events[0]
	size    int // of events
	sent    int // the number of the first event that no reader has been sent
	added   int // the size of all events, those that are no longer kept too
	readers map[*reader]struct{}
	end     *e2b.EndEvent // nil while the process runs
	lost    bool          // the box is gone: the process has no end
	discard bool          // nobody waits for the output any more
}

// A reader reads the output of a process. Its methods are called from one goroutine.
type reader struct {
	of      *output
	next    int       // the number of the next event
	sent    int       // the size of all events before it
	slow    time.Time // since when the process has waited for it; zero when it has caught up
	dropped bool      // it was too slow
}

// sizeOf is what an event takes in memory.
func sizeOf(e *e2b.DataEvent) int {
	return len(e.Stdout) + len(e.Stderr) + len(e.PTY) + int(unsafe.Sizeof(*e))
}

// add adds an event. While a reader has more than maxKept bytes before it, add waits.
func (o *output) add(e *e2b.DataEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		changed, wait := o.changed.Wait(), o.waitLocked(time.Now())
		if wait <= 0 {
			break
		}
		o.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(wait):
		}
		o.mu.Lock()
	}
	if o.discard {
		return
	}
	o.events = append(o.events, e)
	o.size += sizeOf(e)
	o.added += sizeOf(e)
	for o.size > 2*maxKept || o.size > maxKept && len(o.readers) == 0 {
		o.size -= sizeOf(o.events[0])
		o.events[0] = nil
		o.events = o.events[1:]
		o.first++
	}
	o.sent = max(o.sent, o.first)
	o.changed.Send()
}

// waitLocked returns how long the process is to wait for its readers: 0 if it can go on. It drops
// the readers that have held up another one for longer than patience.
func (o *output) waitLocked(now time.Time) (wait time.Duration) {
	if o.discard {
		return 0
	}
	fastest := 0
	for r := range o.readers {
		fastest = max(fastest, r.sent)
	}
	alone := o.added-fastest > maxKept // all readers are behind: nobody is held up
	for r := range o.readers {
		if o.added-r.sent <= maxKept {
			continue
		}
		if alone || r.slow.IsZero() {
			r.slow = now
		}
		left := patience - now.Sub(r.slow)
		if left > 0 {
			wait = max(wait, left)
			continue
		}
		r.dropped = true
		delete(o.readers, r)
	}
	return wait
}

// read returns a reader of what no other reader has been sent, and of what follows. The caller
// closes it.
func (o *output) read() *reader {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &reader{of: o, next: o.sent, sent: o.added}
	for _, e := range o.events[o.sent-o.first:] {
		r.sent -= sizeOf(e)
	}
	if o.readers == nil {
		o.readers = map[*reader]struct{}{}
	}
	o.readers[r] = struct{}{}
	return r
}

// finish says how the process has ended. lost says that the box is gone.
func (o *output) finish(end *e2b.EndEvent, lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end, o.lost = end, lost
	o.changed.Send()
}

// stop discards what the process prints from now on, so that it waits for no reader.
func (o *output) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.discard = true
	o.changed.Send()
}

func (r *reader) close() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	delete(r.of.readers, r)
	r.of.changed.Send()
}

// poll returns the next event, or the end after the last one. If there is neither yet, it returns a
// channel that is closed when it is worth another call.
func (r *reader) poll() (data *e2b.DataEvent, end *e2b.EndEvent, wait <-chan struct{}, err error) {
	o := r.of
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case r.dropped:
		return nil, nil, nil, e2b.Errorf(e2b.ResourceExhausted, "this reader is too slow: output "+
			"that it has not read is no longer kept")
	case r.next < o.first+len(o.events):
		data = o.events[r.next-o.first]
		r.next++
		r.sent += sizeOf(data)
		o.sent = max(o.sent, r.next)
		o.changed.Send()
		return data, nil, nil, nil
	case o.lost:
		return nil, nil, nil, errBoxGone
	case o.end != nil:
		return nil, o.end, nil, nil
	}
	r.slow = time.Time{}
	return nil, nil, o.changed.Wait(), nil
}

// follow sends what the reader reads, until the process's end. keepAlive is called from time to
// time.
func (r *reader) follow(ctx context.Context, ticks <-chan struct{},
	send func(*e2b.ProcessEvent) error) error {
	for {
		data, end, wait, err := r.poll()
		switch {
		case err != nil:
			return err
		case data != nil:
			if err := send(&e2b.ProcessEvent{Data: data}); err != nil {
				return err
			}
			continue
		case end != nil:
			return send(&e2b.ProcessEvent{End: end})
		}
		select {
		case <-wait:
		case <-ticks:
			if err := send(&e2b.ProcessEvent{KeepAlive: &e2b.Empty{}}); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
