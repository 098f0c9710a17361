package e2b

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
)

// A program is what a process runs.
type program struct {
	args      []string
	env       []string
	dir, user string
	size      *e2b.Size // of its terminal; nil without one
}

// A running is a program that runs in a box.
type running struct {
	process  sandbox.Process
	input    *input // nil if it has none
	terminal bool
	cancel   context.CancelFunc // kills it, with all that it has started
}

// The scripts become the program. If it does not exist, they say so and exit with 127, as E2B's
// clients expect. onTerminal sets the terminal as programs expect it.
const (
	inPipes    = `exec "$@"`
	onTerminal = `stty onlcr echoctl 2>/dev/null; exec "$@"`
)

// launch starts a program. When the program has ended, it calls ended, once, with its exit status:
// 128+n if signal n ended it. The error of ended is that of Run.
func launch(ctx context.Context, box sandbox.Sandbox, p program, in *input,
	print func(*e2b.DataEvent), ended func(code int, err error)) (*running, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{input: in, terminal: p.size != nil, cancel: cancel}
	started, over := make(chan sandbox.Process, 1), make(chan struct{})
	cmd := &sandbox.Cmd{Args: append([]string{"/bin/sh", "-c", inPipes, "sh"}, p.args...),
		Dir: p.dir, Env: p.env, User: p.user,
		Started: func(p sandbox.Process) { started <- p },
		Stdout:  writer(func(b []byte) { print(&e2b.DataEvent{Stdout: b}) }),
		Stderr:  writer(func(b []byte) { print(&e2b.DataEvent{Stderr: b}) })}
	if in != nil {
		cmd.Stdin = in
	}
	if r.terminal {
		cmd.Args[2] = onTerminal
		cmd.Terminal = &sandbox.Terminal{Rows: int(p.size.Rows), Cols: int(p.size.Cols)}
		cmd.Stdout = writer(func(b []byte) { print(&e2b.DataEvent{PTY: b}) })
	}
	var code int
	var err error
	go func() {
		defer cancel()
		code, err = box.Run(life, cmd)
		close(over)
		if in != nil {
			in.end()
		}
		ended(code, err)
	}()
	select {
	case r.process = <-started:
		return r, nil
	case <-over:
		if err == nil {
			err = fmt.Errorf("the box's sh has ended with status %d", code)
		}
		return nil, err
	case <-ctx.Done():
		cancel()
		return nil, context.Cause(ctx)
	}
}

// signal sends a signal to the program and those that it has started in its process group.
func (r *running) signal(ctx context.Context, s syscall.Signal) error {
	err := r.process.Signal(ctx, s)
	if errors.Is(err, os.ErrProcessDone) {
		return e2b.Errorf(e2b.NotFound, "the process has ended")
	}
	return err
}

// A writer gets a copy of each Write.
type writer func(b []byte)

func (w writer) Write(b []byte) (int, error) {
	w(bytes.Clone(b))
	return len(b), nil
}
