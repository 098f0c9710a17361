// Package tty asks the kernel about a terminal, and sets its modes, without putting the terminal's
// file in blocking mode.
package tty

import "time"

// Within calls done until it returns true, for about limit, and reports whether it has. It polls,
// because the kernel has no event for data that arrives at a terminal: often at first, then once a
// millisecond.
func Within(limit time.Duration, done func() bool) bool {
	for begin, pause := time.Now(), 20*time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if done() {
			return true
		}
		if time.Since(begin) >= limit {
			return false
		}
		time.Sleep(pause)
	}
}
