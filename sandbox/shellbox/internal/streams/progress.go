package streams

import "sync"

// A Progress counts the bytes that have been read, and the readers that still process their last
// bytes.
type Progress struct {
	mu   sync.Mutex
	n    int64
	busy int // how many readers process their last bytes
}

// Begin counts n bytes that a reader has read and begins to process.
func (p *Progress) Begin(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n, p.busy = p.n+int64(n), p.busy+1
}

// End says that a reader has processed its last bytes.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
}

// Now returns how many bytes have been read, and whether a reader processes its last ones.
func (p *Progress) Now() (n int64, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n, p.busy > 0
}
