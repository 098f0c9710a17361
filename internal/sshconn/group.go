package sshconn

import "sync"

// A Group owns goroutines. After Stop no new goroutine begins, and Wait waits for those that run.
// Its methods may be called from several goroutines. NewGroup makes one.
type Group struct {
	mu      sync.Mutex
	wg      sync.WaitGroup
	stopped chan struct{} // closed by Stop
}

// NewGroup makes a Group without goroutines.
func NewGroup() *Group { return &Group{stopped: make(chan struct{})} }

// Run runs f in a goroutine and returns true. After Stop it does nothing and returns false.
func (g *Group) Run(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.stopped:
		return false
	default:
	}
	g.wg.Go(f)
	return true
}

// Stop prevents new goroutines. It reports whether this was the first call. It does not wait.
func (g *Group) Stop() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.stopped:
		return false
	default:
		close(g.stopped)
		return true
	}
}

// Stopped returns a channel that is closed by Stop.
func (g *Group) Stopped() <-chan struct{} { return g.stopped }

// Wait waits until all goroutines have ended. Call Stop first.
func (g *Group) Wait() { g.wg.Wait() }
