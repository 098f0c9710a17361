package programs

import (
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/tty"
)

// Discard drops input that no program has read: the rest of Writes under way, and what the terminal
// holds. flush drops the latter, and returns how many bytes that were (tcflush with TCIFLUSH
// returns no number). Discard calls flush until nothing is left, because a Write that was blocked
// by a full terminal goes on after the first call. It returns how many bytes were dropped in all.
// It takes at most limit, which it reaches if flush cannot unblock a Write. Bytes that other
// goroutines write during the call may be dropped too.
func (k *Keyboard) Discard(limit time.Duration, flush func() int) (dropped int) {
	last := k.writes.dropAll()
	tty.Within(limit, func() bool {
		// This has to come before the flush, which then finds all that the Writes have typed.
		over := k.writes.over(last)
		n := flush()
		dropped += n
		return over && n == 0
	})
	return dropped + k.writes.takeDropped()
}

// A writes numbers the Writes of a Keyboard, so that Discard can end those that are under way, and
// no later ones.
type writes struct {
	mu      sync.Mutex
	count   int64
	under   []int64 // those that have not ended, the oldest first
	until   int64   // Writes up to this number must not type on
	dropped int     // how many bytes were not typed
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

// drop reports whether the Write with that number must stop typing, and counts the rest of its
// bytes as dropped.
func (w *writes) drop(number int64, rest int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number > w.until {
		return false
	}
	w.dropped += rest
	return true
}

// dropAll makes all Writes under way stop typing, and returns the number of the last.
func (w *writes) dropAll() (last int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = w.count
	return w.count
}

// over reports whether all Writes up to last have ended.
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
