package terminal

// A Tail is an io.Writer that keeps the last bytes written to it. NewTail makes one.
type Tail struct {
	max  int
	data []byte // grows up to max bytes, and is then a ring
	next int    // in a ring, the index of the oldest byte, which the next byte replaces
}

// NewTail returns a Tail that keeps n bytes. Its memory grows as they are written.
func NewTail(n int) *Tail { return &Tail{max: max(n, 0)} }

// Write adds p, and drops the oldest bytes beyond n. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	written := len(p)
	if len(p) >= t.max {
		p = p[len(p)-t.max:]
		t.Reset()
	}
	n := t.grow(p)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(t.data[t.next:], p)
		t.next = (t.next + n) % t.max
	}
	return written, nil
}

// grow appends as much of p to data as fits, and returns how many bytes it has appended.
func (t *Tail) grow(p []byte) int {
	n := min(len(p), t.max-len(t.data))
	if need := len(t.data) + n; need > cap(t.data) {
		data := make([]byte, len(t.data), min(t.max, max(need, 2*cap(t.data), 1024)))
		copy(data, t.data)
		t.data = data
	}
	t.data = append(t.data, p[:n]...)
	return n
}

// Bytes returns a copy of the kept bytes, oldest first.
func (t *Tail) Bytes() []byte {
	b := make([]byte, 0, len(t.data))
	b = append(b, t.data[t.next:]...)
	return append(b, t.data[:t.next]...)
}

// Reset forgets everything written so far, and keeps the memory.
func (t *Tail) Reset() { t.data, t.next = t.data[:0], 0 }
