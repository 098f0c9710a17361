//go:build unix

package harness

import (
	"os"
	"syscall"
)

// terminate asks a program to end.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
