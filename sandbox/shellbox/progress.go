package shellbox

import "sync"

// A progress counts what is read, and knows whether what was read last is still being dealt with.
type progress struct {
	mu   sync.Mutex
	n    int64
	busy int // by so many goroutines
}

func (p *progress) begin(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n, p.busy = p.n+int64(n), p.busy+1
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
}

func (p *progress) now() (n int64, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n, p.busy > 0
}
