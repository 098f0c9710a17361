package shellbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// A runProcess implements sandbox.Process.
type runProcess struct {
	box      *Box
	proc     Process
	terminal bool
	exited   chan struct{} // closed when the program has ended
}

var _ sandbox.Process = (*runProcess)(nil)

// tellStarted calls Cmd.Started, and returns when it has returned or ctx has ended. The channel
// gets the call's error.
func (r *runProcess) tellStarted(ctx context.Context, started func(sandbox.Process)) <-chan error {
	told := guard.Go("Cmd.Started", func() error {
		started(r)
		return nil
	})
	select {
	case err := <-told:
		returned := make(chan error, 1)
		returned <- err
		return returned
	case <-ctx.Done():
		return told
	}
}

// startedError returns the error of Cmd.Started; nil if it has none, or none yet. told may be nil.
func startedError(told <-chan error) error {
	select {
	case err := <-told:
		return err
	default:
		return nil
	}
}

// PID implements sandbox.Process.
func (r *runProcess) PID() int { return r.proc.PID() }

// Signal implements sandbox.Process.
func (r *runProcess) Signal(ctx context.Context, sig syscall.Signal) error {
	err := r.call(ctx, func() error { return r.signal(proc.Signal(strconv.Itoa(int(sig)))) })
	if err != nil {
		return fmt.Errorf("signal %v to process %d: %w", sig, r.PID(), err)
	}
	return nil
}

// signal signals the process group. The program leads it (Process). While it is there, no other
// group has its number.
func (r *runProcess) signal(sig proc.Signal) error {
	pid := r.PID()
	if pid <= 1 {
		return fmt.Errorf("the host says that its process id is %d", pid)
	}
	sent, err := r.box.processes.Send([]int{-pid}, sig)
	if err == nil && sent == 0 && !r.hasExited() { // an earlier boxd knows no groups
		sent, err = r.box.processes.Send([]int{pid}, sig)
	}
	if err == nil && sent == 0 {
		err = errors.New("it may not be signalled, or has just ended")
	}
	return err
}

func (r *runProcess) hasExited() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// Resize implements sandbox.Process.
func (r *runProcess) Resize(ctx context.Context, rows, cols int) error {
	err := session.CheckSize(rows, cols)
	if err == nil && !r.terminal && !r.hasExited() {
		err = errors.New("it has no terminal: set Cmd.Terminal")
	}
	if err == nil {
		err = r.call(ctx, func() error { return r.proc.Resize(rows, cols) })
	}
	if err != nil {
		return fmt.Errorf("resize process %d: %w", r.PID(), err)
	}
	return nil
}

// call calls f, unless the program has ended. The end of ctx does not end f, which is bounded.
func (r *runProcess) call(ctx context.Context, f func() error) error {
	ctx, done, err := r.box.beginCall(ctx)
	if err != nil {
		return err
	}
	if r.hasExited() {
		done()
		return os.ErrProcessDone
	}
	ended := make(chan error, 1)
	go func() {
		defer done()
		err := f()
		if err != nil && r.hasExited() {
			err = os.ErrProcessDone
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}

// terminalOf returns the terminal of a Cmd for the host; nil if it has none.
func terminalOf(cmd *sandbox.Cmd) (*Terminal, error) {
	if cmd.Terminal == nil {
		return nil, nil
	}
	t := &Terminal{Rows: cmp.Or(cmd.Terminal.Rows, sandbox.DefaultRows),
		Cols: cmp.Or(cmd.Terminal.Cols, sandbox.DefaultCols)}
	if err := session.CheckSize(t.Rows, t.Cols); err != nil {
		return nil, fmt.Errorf("Cmd.Terminal: %w", err)
	}
	return t, nil
}
