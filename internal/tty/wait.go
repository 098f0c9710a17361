// Package tty asks the kernel about a terminal, and sets what it is told, without putting the
// terminal's file in blocking mode.
package tty

import "time"

// Within waits until done reports true, for about limit, and reports whether it has. It asks often
// at first, then once a millisecond: what it waits for is on its way through the kernel, which
// tells nobody when it arrives.
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
