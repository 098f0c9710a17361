package sshbox

import "sync"

// A group owns goroutines: whoever stops it can wait for them, and then no new ones begin.
type group struct {
	mu      sync.Mutex
	wg      sync.WaitGroup
	stopped chan struct{} // closed by stop
}

func newGroup() *group { return &group{stopped: make(chan struct{})} }

// run starts f, unless the group has been stopped.
func (g *group) run(f func()) bool {
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

// stop lets no new goroutine begin. It reports whether it was the first to be called.
func (g *group) stop() bool {
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

// wait waits for the goroutines of a stopped group.
func (g *group) wait() { g.wg.Wait() }
