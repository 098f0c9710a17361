package shellbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
)

// runDelay is how long Run waits after the program's end for the end of its output, which a
// background process may hold open.
const runDelay = 2 * time.Second

// runSteps is how often in that time Run asks the host whether it answers.
const runSteps = 8

// Run implements sandbox.Sandbox. If a process that the program left in the background still holds
// the output open two seconds after the program's end, Run returns the exit code and an error that
// is exec.ErrWaitDelay. Time in which the host does not answer, because it is paused or its
// connection is cut, does not count.
func (b *Box) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	if cmd == nil || len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return -1, errors.New("run: Cmd.Args holds no program")
	}
	code, err := b.run(ctx, cmd)
	if err != nil {
		err = runError(cmd.Args[0], err)
	}
	return code, err
}

func runError(program string, err error) error {
	if !strings.ContainsAny(program, " \t\n") {
		return fmt.Errorf("run %s: %w", program, err)
	}
	if errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("%w (in Cmd.Args, each argument is an element of its own)", err)
	}
	return fmt.Errorf("run %q: %w", program, err)
}

func (b *Box) run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	if err := environ.Check(cmd.Env); err != nil {
		return -1, err
	}
	ctx, done, err := b.call(ctx)
	if err != nil {
		return -1, err
	}
	defer done()
	if cmd.Stdin != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = ctxerr.WithCancel(ctx)
		defer cancel(nil)
		read := *cmd
		read.Stdin = &stdin{cmd.Stdin, cancel}
		cmd = &read
	}
	return b.runs(ctx, cmd)
}

// runs is run within a call of the box.
func (b *Box) runs(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	user, err := b.as(cmd.User)
	if err != nil {
		return 126, err
	}
	id := b.newID("run")
	program := Program{
		Args: cmd.Args, Env: b.environment(id, cmd.Env), User: user,
		Joined: sameWriter(cmd.Stdout, cmd.Stderr),
	}
	if cmd.ReplaceEnv {
		program.Env, program.ReplaceEnv = append(slices.Clone(cmd.Env), b.markOf(id)), true
	}
	var proc Process
	other := user
	if p := cmd.Args[0]; strings.Contains(p, "/") && !path.IsAbs(p) {
		other = "" // in "/" it would be another program
	}
	err = b.startIn(cmd.Dir, other, func(dir string) error {
		program.Dir = dir
		proc, err = b.host.Start(ctx, program)
		return err
	})
	if err != nil {
		return b.notStarted(ctx, err)
	}
	defer proc.Close()
	go func() { // Run does not wait for this goroutine: the caller's reader may block for ever
		if cmd.Stdin != nil {
			io.Copy(proc.Stdin(), cmd.Stdin)
		}
		if ctx.Err() == nil {
			proc.Stdin().Close()
		}
	}()
	stderr := cmd.Stderr
	if program.Joined {
		stderr = nil
	}
	if cmd.OOM != nil {
		*cmd.OOM = false
	}
	outputs := copyOutputs(proc, cmd.Stdout, stderr)
	var status Status
	exited := make(chan struct{})
	go func() { status, err = proc.Wait(); close(exited) }()
	select {
	case <-exited:
	case <-ctx.Done():
		b.killTree(proc.PID())
		b.killMarked(b.markOf(id)) // processes that it forked meanwhile, or that left its tree
		select {
		case <-exited:
		case <-time.After(runDelay):
		}
		proc.Close()
		outputs.abandon()
		<-exited
		if errors.Is(ctxerr.Of(ctx), sandbox.ErrClosed) || status.Code == 0 {
			return -1, ctxerr.Of(ctx)
		}
		return status.Code, ctxerr.Of(ctx)
	}
	if err != nil {
		proc.Close()
		outputs.abandon()
		return -1, b.lostOr(err)
	}
	if cmd.OOM != nil {
		*cmd.OOM = b.oomKilled(proc, -1)
	}
	err = outputs.finish(ctx, b.answers)
	if !outputs.done() {
		proc.Close()
		outputs.abandon()
	}
	// The connection may have gone silent.
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, exec.ErrWaitDelay) {
		err = b.lostWithin(silence, err)
	}
	return status.Code, err
}

// notStarted returns the results of Run for a program that could not be started.
func (b *Box) notStarted(ctx context.Context, err error) (int, error) {
	switch {
	case ctx.Err() != nil:
		return -1, ctxerr.Explain(ctx, err)
	case errors.Is(err, exec.ErrNotFound):
		return 127, err
	case errors.Is(err, fs.ErrPermission):
		return 126, err
	}
	return -1, b.lostOr(err)
}

// outputs copy a program's outputs to the caller's writers.
type outputs struct {
	written progress // of the writers
	errs    [2]error
	copied  chan struct{} // closed when both copies have ended
}

// copyOutputs begins to copy a program's outputs. A nil writer discards. A Process may have no
// Stderr.
func copyOutputs(p Process, stdout, stderr io.Writer) *outputs {
	o := &outputs{copied: make(chan struct{})}
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
				o.errs[i] = drain(way.name, way.w, &watched{r: way.r, progress: &o.written})
			})
		}
	}
	go func() { copies.Wait(); close(o.copied) }()
	return o
}

func (o *outputs) done() bool {
	select {
	case <-o.copied:
		return true
	default:
		return false
	}
}

// finish waits after the program's end for the end of its outputs, and returns the writers' errors,
// or exec.ErrWaitDelay. A step of its wait counts only if the host has answered after it: while the
// host is paused or cut off, the end of an output may still be on its way.
func (o *outputs) finish(ctx context.Context, answers func(context.Context) bool) error {
	for last, steps := int64(-1), 0; ; {
		select {
		case <-o.copied:
			return errors.Join(o.errs[:]...)
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		case <-time.After(runDelay / runSteps):
		}
		switch n, busy := o.written.now(); {
		case busy || n != last:
			last, steps = n, 0 // output arrives, or a writer is slow
		case steps == runSteps: // after one more step, for output that arrived with the last answer
			return fmt.Errorf("%w: a process that it left in the background holds its output "+
				"open: redirect that", exec.ErrWaitDelay)
		case answers(ctx):
			steps++
		}
	}
}

// abandon waits until the writers have what was read, for writerDelay at most. It leaves a Write
// that blocks longer behind.
func (o *outputs) abandon() {
	select {
	case <-o.copied:
	case <-time.After(output.WriterDelay):
	}
}

// A watched reader counts what is read, and knows whether the last bytes are still being written to
// a writer.
type watched struct {
	r io.Reader
	*progress
	writing bool
}

func (w *watched) Read(p []byte) (int, error) {
	if w.writing {
		w.end()
	}
	n, err := w.r.Read(p)
	if w.writing = n > 0; w.writing {
		w.begin(n)
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

func sameWriter(a, b io.Writer) (same bool) {
	defer func() { recover() }() // comparing uncomparable types
	return a != nil && a == b
}

// answers asks the host a question, and reports whether it reacted in time. An error counts: a host
// that is lost returns one.
func (b *Box) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, questionLimit)
	defer cancel()
	b.processes.Uptime(ctx)
	return ctx.Err() == nil
}

// silence bounds the time that a host takes to find out that its connection has gone silent.
const silence = 8 * time.Second

// lostOr returns why the host is gone. If the host is there, or does not answer soon, it returns
// err.
func (b *Box) lostOr(err error) error { return b.lostWithin(5*time.Second, err) }

func (b *Box) lostWithin(limit time.Duration, err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if why := b.host.Lost(ctx); why != nil {
		return why
	}
	return err
}
