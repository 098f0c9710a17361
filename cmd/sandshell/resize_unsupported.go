//go:build !unix

package main

import (
	"sync"
	"time"
)

// onResize calls f every half second, because this system has no SIGWINCH. stop ends that.
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
