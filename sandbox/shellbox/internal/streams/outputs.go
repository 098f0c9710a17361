// Package streams moves bytes between a program of the host and a caller: keys to a terminal, and
// the three streams of a program of Run. A caller's reader or writer may block for ever or panic.
// The functions here then leave it behind, and return an error that says so.
package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
)

// WaitDelay is how long Finish waits after a program's end for the end of its output, which a
// background process may hold open.
const WaitDelay = 2 * time.Second

// steps is how often in that time Finish asks the host whether it answers.
const steps = 8

// Outputs copy a program's outputs to the caller's writers.
type Outputs struct {
	written Progress // of the writers
	errs    [2]error
	copied  chan struct{} // closed when both copies have ended
}

// A Program is a shellbox.Process.
type Program interface {
	Stdout() io.Reader
	Stderr() io.Reader // may be nil
}

// Copy begins to copy a program's outputs. A nil writer discards. If the writers are the same, all
// output must come on Stdout.
func Copy(p Program, stdout, stderr io.Writer) *Outputs {
	if SameWriter(stdout, stderr) {
		stderr = nil
	}
	o := &Outputs{copied: make(chan struct{})}
	var copies sync.WaitGroup
	for i, way := range []struct {
		name string
		w    io.Writer
		r    io.Reader
	}{{"Cmd.Stdout", stdout, p.Stdout()}, {"Cmd.Stderr", stderr, p.Stderr()}} {
		if way.w == nil {
			way.w = io.Discard
		}
		if way.r != nil {
			copies.Go(func() {
				o.errs[i] = drain(way.name, way.w, &watched{r: way.r, Progress: &o.written})
			})
		}
	}
	go func() { copies.Wait(); close(o.copied) }()
	return o
}

// Done reports whether both outputs have ended, and the writers have all of them.
func (o *Outputs) Done() bool {
	select {
	case <-o.copied:
		return true
	default:
		return false
	}
}

// Finish waits after the program's end for the end of its outputs, and returns the writers' errors,
// or exec.ErrWaitDelay. A step of its wait counts only if the host has answered after it: while the
// host is paused or cut off, the end of an output may still be on its way.
func (o *Outputs) Finish(ctx context.Context, answers func(context.Context) bool) error {
	for last, waited := int64(-1), 0; ; {
		select {
		case <-o.copied:
			return errors.Join(o.errs[:]...)
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		case <-time.After(WaitDelay / steps):
		}
		switch n, busy := o.written.Now(); {
		case busy || n != last:
			last, waited = n, 0 // output arrives, or a writer is slow
		case waited == steps: // after one more step, for output that arrived with the last answer
			return fmt.Errorf("%w: a process that it left in the background holds its output "+
				"open: redirect that", exec.ErrWaitDelay)
		case answers(ctx):
			waited++
		}
	}
}

// Abandon waits until the writers have what was read, for output.WriterDelay at most. It leaves a
// Write that blocks longer behind.
func (o *Outputs) Abandon() {
	select {
	case <-o.copied:
	case <-time.After(output.WriterDelay):
	}
}

// A watched reader counts what is read, and knows whether the last bytes are still being written to
// a writer.
type watched struct {
	r io.Reader
	*Progress
	writing bool
}

func (w *watched) Read(p []byte) (int, error) {
	if w.writing {
		w.End()
	}
	n, err := w.r.Read(p)
	if w.writing = n > 0; w.writing {
		w.Begin(n)
	}
	return n, err
}

// drain copies r to w, which errors call name. If w fails, panics or ends its goroutine, drain goes
// on reading to the end of r, so that the program does not block.
func drain(name string, w io.Writer, r io.Reader) error {
	err := <-guard.Go(name, func() error {
		_, err := io.Copy(w, r)
		return err
	})
	if _, rest := io.Copy(io.Discard, r); errors.Is(rest, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the end of the output is missing: %w", rest)
	} else if rest != nil { // it was closed
		return nil
	}
	return err
}

// SameWriter reports whether a and b are the same writer. If == cannot compare them, they are not.
func SameWriter(a, b io.Writer) (same bool) {
	defer func() { recover() }() // comparing uncomparable types
	return a != nil && a == b
}
