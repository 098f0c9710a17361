//go:build !unix

package main

import (
	"sync"
	"time"
)

// onResize calls f from time to time, until stop returns: there is no SIGWINCH here.
func onResize(f func()) (stop func()) {
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		wait.Wait()
	}
}
