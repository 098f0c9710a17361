//go:build unix

package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onResize calls f whenever the size of this program's terminal has changed. stop ends that.
func onResize(f func()) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	var wait sync.WaitGroup
	wait.Go(func() {
		f() // for a change before Notify
		for range changed {
			f()
		}
	})
	return func() {
		signal.Stop(changed)
		close(changed)
		wait.Wait()
	}
}
