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
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/streams"
)

// Run implements sandbox.Sandbox. If a process that the program left in the background still holds
// the output open two seconds after the program's end, Run returns the exit code and an error that
// is exec.ErrWaitDelay. Time in which the host does not answer, because it is paused or its
// connection is cut, does not count.
func (b *Box) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	switch {
	case cmd == nil:
		return -1, errors.New("run: the Cmd is nil")
	case len(cmd.Args) == 0 || cmd.Args[0] == "":
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
	if err := environ.Check("Cmd.Env", cmd.Env); err != nil {
		return -1, err
	}
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return -1, err
	}
	defer done()
	if cmd.Stdin != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = ctxerr.WithCancel(ctx)
		defer cancel(nil)
		read := *cmd
		read.Stdin = streams.Stdin(cmd.Stdin, cancel)
		cmd = &read
	}
	return b.runInCall(ctx, cmd)
}

// runInCall is run within a call of the box.
func (b *Box) runInCall(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	user, err := b.userFor(cmd.User)
	if err != nil {
		return 126, err
	}
	terminal, err := terminalOf(cmd)
	if err != nil {
		return -1, err
	}
	id := b.newID("run" + b.tag)
	proc, err := b.startCmd(ctx, cmd, id, user, terminal)
	if err != nil {
		return b.notStarted(ctx, err)
	}
	defer proc.Close()
	var status Status
	r := &runProcess{box: b, proc: proc, terminal: terminal != nil, exited: make(chan struct{})}
	go func() { status, err = proc.Wait(); close(r.exited) }()
	var told <-chan error
	if cmd.Started != nil {
		told = r.tellStarted(ctx, cmd.Started)
	}
	go func() { // Run does not wait for this goroutine: the caller's reader may block for ever
		if cmd.Stdin != nil {
			io.Copy(proc.Stdin(), cmd.Stdin)
		}
		if ctx.Err() == nil {
			proc.Stdin().Close()
		}
	}()
	if cmd.OOM != nil {
		*cmd.OOM = false
	}
	outputs := streams.Copy(proc, cmd.Stdout, cmd.Stderr)
	select {
	case <-r.exited:
	case <-ctx.Done():
		b.processes.KillTree(proc.PID())
		// processes that it forked during KillTree, or that left its tree
		b.processes.KillMarked(b.env.MarkOf(id))
		select {
		case <-r.exited:
		case <-time.After(streams.WaitDelay):
		}
		proc.Close()
		outputs.Abandon()
		<-r.exited
		if errors.Is(ctxerr.Of(ctx), sandbox.ErrClosed) || status.Code == 0 {
			return -1, ctxerr.Of(ctx)
		}
		return status.Code, ctxerr.Of(ctx)
	}
	if err != nil {
		proc.Close()
		outputs.Abandon()
		return -1, b.lostOr(err)
	}
	if cmd.OOM != nil {
		*cmd.OOM = b.processes.OOMKilled(proc, -1, 0)
	}
	err = outputs.Finish(ctx, b.processes.Answers)
	if !outputs.Done() {
		proc.Close()
		outputs.Abandon()
	}
	// The connection may have gone silent.
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, exec.ErrWaitDelay) {
		err = b.lostWithin(silence, err)
	}
	if serr := startedError(told); serr != nil {
		err = errors.Join(err, serr)
	}
	return status.Code, err
}

// startCmd starts the program of a Run.
func (b *Box) startCmd(ctx context.Context, cmd *sandbox.Cmd, id, user string,
	terminal *Terminal) (proc Process, err error) {
	program := Program{
		Args: cmd.Args, Env: b.env.Of(id, cmd.Env), User: user,
		Joined: terminal == nil && streams.SameWriter(cmd.Stdout, cmd.Stderr), Terminal: terminal,
	}
	if cmd.ReplaceEnv {
		program.Env, program.ReplaceEnv = append(slices.Clone(cmd.Env), b.env.MarkOf(id)), true
	}
	if p := cmd.Args[0]; strings.Contains(p, "/") && !path.IsAbs(p) {
		user = "" // startIn must not try "/": the program there would be another one
	}
	err = b.startIn(cmd.Dir, user, func(dir string) error {
		program.Dir = dir
		proc, err = b.host.Start(ctx, program)
		return err
	})
	return proc, err
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
