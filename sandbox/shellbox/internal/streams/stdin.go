package streams

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sandshell/sandshell/internal/guard"
)

// Stdin returns a Cmd's standard input. If a Read of r fails, cancel kills the program: an end of
// its input would tell the program that the input is complete.
func Stdin(r io.Reader, cancel context.CancelCauseFunc) io.Reader { return &stdin{r, cancel} }

type stdin struct {
	r      io.Reader
	cancel context.CancelCauseFunc
}

func (s *stdin) Read(p []byte) (n int, err error) {
	err = errors.New("Cmd.Stdin has ended its goroutine") // unless the Read returns
	defer func() {
		if err != nil && err != io.EOF {
			s.cancel(fmt.Errorf("read its input: %w", err))
		}
	}()
	n, err = guard.Reader("Cmd.Stdin", s.r).Read(p)
	return n, err
}
