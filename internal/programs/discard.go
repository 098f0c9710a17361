package programs

import (
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/tty"
)

// Discard drops what has been written and no program has read: what Writes under way have not typed
// yet, and what the terminal holds. The latter is dropped by flush, which returns how many bytes
// that were (tcflush with TCIFLUSH tells no number). It is called until nothing is left, as a Write
// that is blocked, because the terminal is full, goes through after the first time. Discard returns
// how many bytes were dropped in all. It takes at most limit, which it reaches if flush cannot free
// a blocked Write. What other goroutines write meanwhile may be dropped, too.
func (k *Keyboard) Discard(limit time.Duration, flush func() int) (dropped int) {
	last := k.writes.dropAll()
	tty.Within(limit, func() bool {
		over := k.writes.over(last) // before the flush: what such a Write has typed is there then
		n := flush()
		dropped += n
		return over && n == 0
	})
	return dropped + k.writes.takeDropped()
}

// A writes numbers a Keyboard's Writes, so that Discard can end those that are under way, and no
// later ones.
type writes struct {
	mu      sync.Mutex
	count   int64
	under   []int64 // those that have not ended, the oldest first
	until   int64   // those up to this one are to type no more
	dropped int     // so many bytes were not typed
}

func (w *writes) begin() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	w.under = append(w.under, w.count)
	return w.count
}

func (w *writes) end(number int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.under = slices.DeleteFunc(w.under, func(n int64) bool { return n == number })
}

// drop reports whether the Write of that number is to type no more, and counts what it leaves out.
func (w *writes) drop(number int64, rest int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number > w.until {
		return false
	}
	w.dropped += rest
	return true
}

// dropAll has all Writes under way type no more, and returns the number of the last.
func (w *writes) dropAll() (last int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = w.count
	return w.count
}

// over reports whether all Writes up to that number have ended.
func (w *writes) over(last int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.under) == 0 || w.under[0] > last
}

func (w *writes) takeDropped() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, w.dropped = w.dropped, 0
	return n
}
