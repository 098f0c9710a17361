package shellbox

import "sync"

// A progress counts the bytes that have been read, and the readers that still process their last
// bytes.
type progress struct {
	mu   sync.Mutex
	n    int64
	busy int // how many readers process their last bytes
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
