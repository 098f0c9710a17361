package shellbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/sandbox"
)

// runDelay is how long Run waits, after the program's end, for the end of its output, which a background process may hold open.
const runDelay = 2 * time.Second

// Run implements sandbox.Sandbox. When a process that the program left in the background still holds its output open two
// seconds after its end, Run returns with its exit code and an error that is exec.ErrWaitDelay.
func (b *Box) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	if cmd == nil || len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return -1, errors.New("run: Cmd.Args holds no program")
	}
	code, err := b.run(ctx, cmd)
	if err != nil {
		err = fmt.Errorf("run %s: %w", cmd.Args[0], err)
	}
	return code, err
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
	id := b.name("run")
	dir := cmd.Dir
	if !path.IsAbs(dir) {
		dir = path.Join(b.opts.Dir, dir)
	}
	proc, err := b.host.Start(ctx, Program{Args: cmd.Args, Dir: dir, Env: b.environment(id, cmd.Env)})
	switch {
	case ctx.Err() != nil && err != nil:
		return -1, b.cause(ctx, err)
	case errors.Is(err, exec.ErrNotFound):
		return 127, err
	case errors.Is(err, fs.ErrPermission):
		return 126, err
	case err != nil:
		return -1, b.lostOr(err)
	}
	defer proc.Close()

	stdout, stderr := cmd.Stdout, cmd.Stderr
	if stdout == nil {
		stdout = io.Discard
	}
	if stderr == nil {
		stderr = io.Discard
	}
	if sameWriter(stdout, stderr) { // as in os/exec: if both are the same writer, only one goroutine at a time writes to it
		shared := &lockedWriter{w: stdout}
		stdout, stderr = shared, shared
	}
	go func() { // Run does not wait for it: the caller's reader may block for ever
		if cmd.Stdin != nil {
			io.Copy(proc.Stdin(), cmd.Stdin)
		}
		proc.Stdin().Close()
	}()
	var outErr, errErr error
	var copies sync.WaitGroup
	copies.Go(func() { outErr = drain(stdout, proc.Stdout()) })
	copies.Go(func() { errErr = drain(stderr, proc.Stderr()) })
	copied := make(chan struct{})
	go func() { copies.Wait(); close(copied) }()

	var status Status
	exited := make(chan struct{})
	go func() { status, err = proc.Wait(); close(exited) }()
	select {
	case <-exited:
	case <-ctx.Done():
		b.killTree(proc.PID())
		b.killMarked(b.markOf(id)) // what it forked while we looked, or has left its tree
		select {
		case <-exited:
		case <-time.After(runDelay):
		}
		proc.Close()
		<-copied
		<-exited
		if errors.Is(context.Cause(ctx), sandbox.ErrClosed) || status.Code == 0 {
			return -1, context.Cause(ctx)
		}
		return status.Code, context.Cause(ctx)
	}
	if err != nil {
		proc.Close()
		<-copied
		return -1, b.lostOr(err)
	}
	delay := time.NewTimer(runDelay)
	defer delay.Stop()
	select {
	case <-copied:
		return status.Code, errors.Join(outErr, errErr)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-delay.C:
		err = fmt.Errorf("%w: a process that it left in the background holds its output open: redirect that", exec.ErrWaitDelay)
	}
	proc.Close()
	<-copied
	return status.Code, err
}

// drain copies until the end of r. If w fails, it reads on, so that the program does not block.
func drain(w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, r)
	if _, rest := io.Copy(io.Discard, r); rest != nil { // r failed: it was closed, or the host is lost, as Wait tells
		return nil
	}
	return err
}

func sameWriter(a, b io.Writer) (same bool) {
	defer func() { recover() }() // comparing uncomparable types
	return a == b && a != io.Discard
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// lostOr returns why the host is gone, or err if it is there.
func (b *Box) lostOr(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if why := b.host.Lost(ctx); why != nil {
		return why
	}
	return err
}
