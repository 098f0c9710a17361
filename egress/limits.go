package egress

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A meter measures what a box takes.
type meter struct {
	limits Limits
	bytes  atomic.Int64

	mu     sync.Mutex
	tokens float64 // how many requests may begin
	at     time.Time
}

func newMeter(l Limits) *meter {
	return &meter{limits: l, tokens: max(1, l.Rate), at: time.Now()}
}

var errBytes = errors.New("this sandbox has transferred all the bytes that it may")

// begin returns why a request may not begin now; nil means that it may.
func (m *meter) begin() error {
	if m.limits.Bytes > 0 && m.bytes.Load() >= m.limits.Bytes {
		return errBytes
	}
	if m.limits.Rate <= 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.tokens = min(max(1, m.limits.Rate), m.tokens+now.Sub(m.at).Seconds()*m.limits.Rate)
	m.at = now
	if m.tokens < 1 {
		return errors.New("this sandbox has begun all the requests that it may: try again in a " +
			"second")
	}
	m.tokens--
	return nil
}

// counted returns a reader of r that adds to n, and fails once the box may transfer no more.
func (m *meter) counted(r io.Reader, n *atomic.Int64) io.Reader { return &counted{r, m, n} }

type counted struct {
	r io.Reader
	m *meter
	n *atomic.Int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if c.m.limits.Bytes > 0 && c.m.bytes.Load() >= c.m.limits.Bytes {
		return 0, errBytes
	}
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	c.m.bytes.Add(int64(n))
	return n, err
}

// A body is a counted body of a request or an answer.
type body struct {
	io.Reader
	io.Closer
}

// An upgraded is a counted body that is written to too.
type upgraded struct {
	body
	w    io.Writer
	m    *meter
	sent *atomic.Int64
}

// Write implements io.Writer.
func (u *upgraded) Write(p []byte) (int, error) {
	n, err := u.w.Write(p)
	u.sent.Add(int64(n))
	u.m.bytes.Add(int64(n))
	return n, err
}
