package programs

import (
	"bytes"
	"io"
)

// A Guard reads the output of a shell's terminal. While the shell is stopped (SIGSTOP), another
// program may take its commands and forge its answers. So the Guard kills a shell that has been
// stopped, and drops all output from the next command's end on.
type Guard struct {
	Terminal io.Reader
	PID      int    // of the shell, a child of this process that has not been waited for
	Kill     func() // ends the shell

	stopped bool
}

// Read implements io.Reader.
func (g *Guard) Read(b []byte) (n int, err error) {
	for {
		n, err = g.Terminal.Read(b)
		switch {
		case g.stopped:
			n = 0 // other programs may go on printing
		case n > 0 && wasStopped(g.PID):
			g.stopped = true
			g.Kill()
			if end := bytes.Index(b[:n], []byte("\x1b]133;D")); end >= 0 {
				n = end
			}
		}
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
	}
}
