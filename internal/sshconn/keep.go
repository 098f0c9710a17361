package sshconn

import (
	"errors"
	"fmt"
	"time"
)

// Keep asks the server for a sign of life at every interval. If nothing at all arrives from the
// server during misses intervals after a question, the connection ends. Keep may be called once.
func (c *Conn) Keep(interval time.Duration, misses int) {
	c.keeps <- keeper{interval: interval, misses: misses}
}

// A keeper asks the server for signs of life.
type keeper struct {
	interval   time.Duration
	misses     int
	asked      <-chan struct{} // closed by the answer
	unanswered int
	received   uint64
}

var errSilent = errors.New("no answer")

// check is called every interval. Its error is the reason to end the connection.
func (k *keeper) check(c *Conn) error {
	if now := c.line.received.Load(); now != k.received {
		// the server lives, even if its answer waits behind other output
		k.received, k.unanswered = now, 0
	}
	if k.asked != nil {
		select {
		case <-k.asked:
			k.unanswered = 0
		default:
			if k.unanswered++; k.unanswered >= k.misses {
				return fmt.Errorf("%w for %v", errSilent, time.Duration(k.misses)*k.interval)
			}
			return nil
		}
	}
	k.asked = c.Ping()
	return nil
}
