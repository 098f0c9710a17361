package sshconn

import (
	"sync"
	"time"
)

// A deadline is a deadline of a net.Conn: it can be moved and removed. (net.Pipe has the same type,
// which is not exported.)
type deadline struct {
	mu    *sync.Mutex
	state *deadlineState
}

type deadlineState struct {
	timer  *time.Timer
	cancel chan struct{} // closed when the deadline has passed
}

func makeDeadline() deadline {
	return deadline{mu: new(sync.Mutex), state: &deadlineState{cancel: make(chan struct{})}}
}

// set moves the deadline. The zero time removes it.
func (d deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state.timer != nil && !d.state.timer.Stop() {
		<-d.state.cancel // the timer has fired: its function closes cancel
	}
	d.state.timer = nil

	closed := false
	select {
	case <-d.state.cancel:
		closed = true
	default:
	}
	if t.IsZero() {
		if closed {
			d.state.cancel = make(chan struct{})
		}
		return
	}
	if wait := time.Until(t); wait > 0 {
		if closed {
			d.state.cancel = make(chan struct{})
		}
		cancel := d.state.cancel
		d.state.timer = time.AfterFunc(wait, func() { close(cancel) })
		return
	}
	if !closed {
		close(d.state.cancel)
	}
}

// passed returns a channel that is closed when the deadline has passed.
func (d deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state.cancel
}
