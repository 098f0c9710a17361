package sshconn

import (
	"errors"
	"fmt"
	"time"
)

// Keep has the server asked every interval for a sign of life, from now on. When nothing at all has
// come from the server for misses intervals after a question, the connection is ended. It may be
// called once.
func (c *Conn) Keep(interval time.Duration, misses int) {
	c.keeps <- keeper{interval: interval, misses: misses}
}

// A keeper asks for signs of life.
type keeper struct {
	interval   time.Duration
	misses     int
	asked      <-chan struct{} // closed by the answer
	unanswered int
	received   uint64
}

var errSilent = errors.New("no answer")

// check is called every interval. Its error is why the connection is to end.
func (k *keeper) check(c *Conn) error {
	if now := c.line.received.Load(); now != k.received {
		k.received, k.unanswered = now, 0 // it lives, even if the answer waits behind other output
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
