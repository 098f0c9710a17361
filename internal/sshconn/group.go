package sshconn

import "sync"

// A Group owns goroutines. Once it has been stopped, no new ones begin, and Wait waits for those
// that run.
type Group struct {
	mu      sync.Mutex
	wg      sync.WaitGroup
	stopped chan struct{} // closed by Stop
}

// NewGroup makes a Group without goroutines.
func NewGroup() *Group { return &Group{stopped: make(chan struct{})} }

// Run starts f, unless the group has been stopped.
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

// Stop lets no new goroutine begin. It reports whether this was the first call.
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

// Stopped is closed by Stop.
func (g *Group) Stopped() <-chan struct{} { return g.stopped }

// Wait waits for the goroutines of a stopped group.
func (g *Group) Wait() { g.wg.Wait() }
