package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/streams"
)

// A job on pipes (sandbox.Pipes) is a job whose session has no terminal: its shell has the command
// as an argument, and is a process on three pipes, which the host holds. All of the session's life
// is that of any other job. The command is running when its shell has been started, and ends with
// it.

// startOnPipes starts the job's command. Begin begins to read what it prints.
func (s *Session) startOnPipes(ctx context.Context, dir string) error {
	if strings.ContainsRune(s.job.command, 0) {
		return errNULByte
	}
	if s.box.Keeps {
		text, err := s.noteText("", 0, nil)
		if err != nil {
			return err
		}
		ctx = hostapi.WithNote(ctx, text)
	}
	s.job.newCommand()
	start := func() (Process, error) {
		return s.box.Start(s.named(ctx), Program{
			Args: dialect.Script(s.box.shell(), s.job.cmd.text), Dir: dir,
			Env: s.box.Env.Of(s.id, s.opts.Env), User: s.opts.User, Spool: s.maxLog(), Pipes: true,
		})
	}
	p, err := start()
	if errors.Is(err, exec.ErrNotFound) && s.box.Shell == nil &&
		s.box.noBash.CompareAndSwap(false, true) {
		p, err = start()
	}
	if err != nil {
		return ctxerr.Explain(ctx, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isNew = false
	s.sh = newShellOnPipes(p)
	return nil
}

func newShellOnPipes(p Process) *shell {
	sh := newShell(p, dialect.Dialect{})
	sh.keys = streams.NewTypist(p.Stdin(), commandPiece)
	return sh
}

// attachOnPipes continues a job on pipes. All output that the host has kept is read again.
func (s *Session) attachOnPipes(k hostapi.Kept, n Note) {
	j := s.job
	j.newCommand()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sh, s.inputEnded = newShellOnPipes(k.Process.(Process)), n.InputEnded
	if k.Skipped > 0 {
		j.spool.Skip(k.Skipped)
	}
	s.beginOnPipesLocked(j.cmd, "command taken over")
	go j.run()
}

// beginOnPipesLocked begins the command, whose shell runs.
func (s *Session) beginOnPipesLocked(c *command, what string) {
	sh := s.sh
	s.cmd, c.sh, c.offset = c, sh, -1
	s.advanceShellLocked(sh, phase.Greeted)
	s.advanceLocked(c, phase.LineSent)
	s.advanceLocked(c, phase.OutputBegan)
	s.logBeginLocked(c, what)
	s.box.Touch()
	sh.keys.Start(&s.readers)
	s.readers.Go(func() { s.readPipes(sh, c) })
}

// readPipes reads both outputs until the shell's end and theirs, and ends the command.
func (s *Session) readPipes(sh *shell, c *command) {
	var got streams.Progress
	ends := make(chan error, 2)
	s.readers.Go(func() { ends <- s.readPipe(sh.proc.Stdout(), c, s.job.spool, &got) })
	s.readers.Go(func() { ends <- s.readPipe(sh.proc.Stderr(), c, s.job.errors, &got) })
	status, lost := s.box.Wait(sh.proc)
	sh.oom = s.oomKilled(nil) // before Close: then the host forgets the process
	close(sh.exited)
	sh.keys.Stop()
	open := s.awaitPipes(ends, &got, &lost)
	sh.proc.Close()
	for range open {
		<-ends
	}
	sh.status, sh.lost = status, lost
	close(sh.ended)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advanceShellLocked(sh, phase.ProcessEnded)
	switch {
	case s.err != nil: // closed, or left to another program
	case lost != nil:
		s.readers.Go(func() { s.failLost(lost) })
	default:
		s.finishCommandLocked(c, &sandbox.Result{State: sandbox.Exited, ExitCode: status.Code,
			OOM: sh.oom})
	}
}

// readPipe reads an output up to its end. It returns why the end is missing.
func (s *Session) readPipe(r io.Reader, c *command, to *output.Spool, got *streams.Progress) error {
	buf := make([]byte, readFirst)
	for {
		n, err := r.Read(buf)
		got.Begin(n)
		s.handlePiped(c, to, buf[:n])
		got.End()
		if gone := (*hostapi.SkippedError)(nil); errors.As(err, &gone) {
			to.Skip(gone.Bytes)
			err = nil
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return err
		case err != nil:
			return nil
		case n == len(buf) && n < readMost: // it prints much
			buf = make([]byte, 2*n)
		}
	}
}

// handlePiped takes a piece of an output.
func (s *Session) handlePiped(c *command, to *output.Spool, text []byte) {
	if len(text) == 0 {
		return
	}
	s.mu.Lock()
	tees := c.follows
	if to == c.spool {
		c.out.SetSize(s.rows, s.cols)
		c.addOutputLocked(text)
		tees = c.tees
	} else {
		c.active = time.Now()
		c.printed += int64(len(text))
	}
	to.Write(text)
	for _, t := range tees {
		t.Announce(len(text))
	}
	s.mu.Unlock()
	for _, t := range tees {
		t.Write(text)
	}
}

// awaitPipes waits after the shell's end for the ends of both outputs. If a process holds one open,
// it waits until nothing has come for streams.WaitDelay, in which the host answers. It returns how
// many outputs are open.
func (s *Session) awaitPipes(ends <-chan error, got *streams.Progress, lost *error) (open int) {
	const steps = 8
	last, quiet := int64(-1), 0
	for open = 2; open > 0; {
		select {
		case err := <-ends:
			open--
			if *lost == nil {
				*lost = err
			}
			continue
		case <-s.ended:
			return open
		case <-time.After(streams.WaitDelay / steps):
		}
		n, busy := got.Now()
		switch {
		case *lost != nil: // it may not answer any more
			return open
		case busy || n != last:
			last, quiet = n, 0
		case quiet == steps: // after one more step, for what has come with the last answer
			return open
		case s.box.answersWithin(killPatience):
			quiet++
		}
	}
	return 0
}

// errNULByte is the error of a command that no shell can take.
var errNULByte = errors.New("a command cannot hold a NUL byte: write it as \\0 for printf, or " +
	"copy a file in")

// running returns the status of a job on pipes, or nil if it has ended.
func (j *Job) running() *sandbox.Result {
	j.session.mu.Lock()
	defer j.session.mu.Unlock()
	if j.cmd.phase.Over() {
		return nil
	}
	return &sandbox.Result{State: sandbox.Running, ExitCode: -1,
		Duration: time.Since(j.cmd.began)}
}

// Stderr implements sandbox.Job.
func (j *Job) Stderr(ctx context.Context, offset int64) ([]byte, int64, error) {
	data, next, err := []byte(nil), offset, errOnTerminal
	if j.session.opts.Pipes {
		data, next, err = j.errors.Read(offset, logsMax)
	}
	if err == nil {
		err = CheckContext(ctx)
	}
	if err != nil {
		return nil, offset, fmt.Errorf("standard error of %s: %w", j.session.id, err)
	}
	return data, next, nil
}

// errOnTerminal is the error of what only a job on pipes can do.
var errOnTerminal = fmt.Errorf("%w: the job is on a terminal: start it with Pipes",
	errors.ErrUnsupported)

// writeInput is Input of a job on pipes, which has not ended.
func (j *Job) writeInput(ctx context.Context, text string) error {
	s := j.session
	s.mu.Lock()
	sh, err := s.sh, error(nil)
	if s.inputEnded {
		err = fmt.Errorf("%w: EndInput has ended it", io.ErrClosedPipe)
	} else {
		j.cmd.active = time.Now()
		sh.keys.Write(text)
	}
	s.mu.Unlock()
	if err == nil {
		err = sh.keys.AwaitIdle(ctx)
	}
	if err != nil {
		return fmt.Errorf("input to %s: %w", s.id, err)
	}
	return nil
}

// EndInput implements sandbox.Job.
func (j *Job) EndInput(ctx context.Context) error {
	err := j.check(ctx)
	switch {
	case errors.Is(err, os.ErrProcessDone):
		err = sandbox.ErrIdle
	case err == nil && !j.session.opts.Pipes:
		err = fmt.Errorf("%w; or type \"\\x04\" by Input", errOnTerminal)
	case err == nil:
		err = j.endInput(ctx)
	}
	if err != nil {
		return fmt.Errorf("end of input to %s: %w", j.session.id, err)
	}
	return nil
}

// endInput ends the input when all of it is written, also if ctx ends before.
func (j *Job) endInput(ctx context.Context) error {
	s := j.session
	s.mu.Lock()
	sh := s.sh
	s.inputEnded = true
	s.mu.Unlock()
	ended := make(chan struct{})
	err := s.spawn(func() {
		defer close(ended)
		sh.keys.AwaitIdle(context.Background()) // the shell's end ends it
		sh.proc.Stdin().Close()
		s.storeNote(sh)
	})
	if err != nil { // the job's end is near
		<-j.done
		return cmp.Or(j.err, sandbox.ErrIdle)
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}

func (s *Session) hasInputEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inputEnded
}

// EndTree ends the processes of a job on pipes. No terminal hangs up there, and they may have
// cleared the environment that has the mark.
func (s *Session) EndTree() {
	s.mu.Lock()
	sh := s.sh
	s.mu.Unlock()
	if !s.opts.Pipes || sh == nil {
		return
	}
	select {
	case <-sh.exited: // its id may be another process's
	default:
		s.box.Processes.KillTree(sh.pid)
	}
}

// signalGroup signals the process group of a job on pipes, which its shell leads.
func (j *Job) signalGroup(sig proc.Signal) error {
	j.session.mu.Lock()
	sh := j.session.sh
	j.session.mu.Unlock()
	select {
	case <-sh.exited: // its id may be another process's
		return os.ErrProcessDone
	default:
	}
	if sh.pid <= 1 {
		return fmt.Errorf("the host says that its process id is %d", sh.pid)
	}
	sent, err := j.session.box.Processes.Send([]int{-sh.pid}, sig)
	if err == nil && sent == 0 {
		err = errors.New("it may not be signalled, or has just ended")
	}
	return err
}
