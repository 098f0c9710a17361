//go:build !unix

package harness

import "os"

// terminate kills a program: this system has no SIGTERM.
func terminate(p *os.Process) error { return p.Kill() }
