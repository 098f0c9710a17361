//go:build !unix

package harness

import "os"

// terminate ends a program: here, none can be asked to.
func terminate(p *os.Process) error { return p.Kill() }
