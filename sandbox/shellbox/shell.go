package shellbox

import (
	"context"
	"errors"
	"io"
	"path"
	"time"

	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// A shell is one process of a session's shell. Its commands come on a pipe, and what programs read
// is its terminal.
type shell struct {
	proc     Process
	pid      int
	dialect  dialect.Dialect
	commands *typist // on the pipe
	keys     *typist // on the terminal
	scan     dialect.Scanner
	answered broadcast.Signal // with each End marker
	exited   chan struct{}    // closed when its process has ended
	// closed when the shell has ended, and all that it has printed was read,
	ended  chan struct{}
	status Status // so,
	lost   error  // or nobody knows how: the host is gone
	oom    bool   // and the kernel had killed because of memory

	// bytes of the terminal's output that have been taken; only its reader looks at it
	readBytes int64
	jobStart  int64 // as many of them came before the output of a job

	pipe  string // what the shell reads when it waits for a command, see proc.Look; "": unknown
	image string // its program's, see proc.Look; "": unknown

	// it was found stopped: what says that a command has ended need not be its own; see session.mu
	stopped bool

	earlyText []byte      // what it printed before its first prompt, the begin; see session.mu
	idleTimer *time.Timer // asks it before it ends because it is idle; see session.mu

	// what another interactive shell, which exec had put in its place, has left
	inherited *inheritance
}

func newShell(p Process, secret string) *shell {
	sh := &shell{
		proc: p, pid: p.PID(), dialect: dialect.Dialect{Secret: secret, TTY: "/dev/tty"},
		commands: newTypist(p.Commands(), commandPiece), keys: newTypist(p.Stdin(), keysPiece),
		exited: make(chan struct{}), ended: make(chan struct{}),
	}
	sh.scan = sh.dialect.Scanner()
	return sh
}

// runLocked starts the goroutines of a shell; s.mu is held.
func (s *session) runLocked(sh *shell) {
	sh.commands.start(&s.readers)
	sh.keys.start(&s.readers)
	s.readers.Go(func() { s.readTerminal(sh) })
}

// confirmEvery is after which time a shell is asked again that has not answered although it waits
// for a line; four times as long each further time, as a busy machine may have read the answer, and
// not got round to it.
const confirmEvery = 50 * time.Millisecond

// confirmShell returns when the shell has answered a question: what had interrupted it before has
// passed. A shell that does not answer is replaced.
func (s *session) confirmShell(sh *shell) {
	for try := 1; ; try++ {
		s.mu.Lock()
		seq := s.nextSeqLocked()
		if try == maxTries {
			sh.commands.write(dialect.Repair)
		}
		sh.commands.write(sh.dialect.Ask(seq))
		s.mu.Unlock()
		asked := time.Now()
		for idle := 0; idle < 2; idle++ { // an interrupt may have made the shell drop the line
			ctx, cancel := context.WithTimeout(context.Background(), confirmEvery<<(2*(try-1)))
			err := s.awaitAnswer(ctx, sh, seq)
			cancel()
			if err == nil || !errors.Is(err, context.DeadlineExceeded) {
				return
			}
			if l, err := s.box.look(sh.proc); err != nil || sh.pipe == "" || l.Reads != sh.pipe {
				idle = -1 // it is at work, with a prompt command perhaps
			} else if (s.box.settle(sh.proc) || !sh.commands.idle()) && time.Since(asked) < surely {
				idle = -1 // the question or the answer is on its way: the machine is busy
			}
		}
		if try == maxTries {
			s.mu.Lock()
			s.replaceShellLocked(sh)
			s.mu.Unlock()
			return
		}
	}
}

// readMost is how much of the terminal's output one read takes, at most; an idle box keeps a buffer
// of readFirst.
const (
	readMost  = 32 << 10
	readFirst = 1 << 10
)

// readTerminal reads the terminal until the shell's end.
func (s *session) readTerminal(sh *shell) {
	eof := make(chan struct{})
	var status Status
	var waitErr error
	var got progress
	s.readers.Go(func() {
		status, waitErr = sh.proc.Wait()
		sh.oom = s.oomKilled(nil) // before Close: then the host forgets the shell
		close(sh.exited)
		// After the shell's end a background process may keep the terminal open. Do not wait for
		// it: what the shell has printed is there by now.
		s.untilQuiet(sh, eof, &got)
		sh.proc.Close()
	})
	buf := make([]byte, readFirst)
	var end error
	for end == nil {
		var n int
		n, end = sh.proc.Stdout().Read(buf)
		got.begin(n)
		s.readChunk(sh, buf[:n])
		got.end()
		if gone := (*hostapi.SkippedError)(nil); errors.As(end, &gone) {
			s.skipOutput(sh, gone.Bytes)
			end = nil
		}
		if n == len(buf) && n < readMost { // it prints much
			buf = make([]byte, 2*n)
		}
	}
	s.handleOutput(sh, sh.scan.Flush())
	close(eof)
	sh.commands.stop()
	sh.keys.stop()
	select {
	case <-sh.exited:
	case <-time.After(2 * time.Second):
		// nobody has the terminal open, yet the shell lives: it is of no use
		sh.proc.Close()
		<-sh.exited
	}
	// what the shell has printed last is missing
	if waitErr == nil && errors.Is(end, io.ErrUnexpectedEOF) {
		waitErr = end
	}
	sh.status, sh.lost = status, waitErr
	close(sh.ended)
	s.mu.Lock()
	if sh.idleTimer != nil {
		sh.idleTimer.Stop()
	}
	s.mu.Unlock()
	s.handleShellEnd(sh, status, waitErr)
}

// readChunk takes what the terminal shows.
func (s *session) readChunk(sh *shell, chunk []byte) {
	for len(chunk) > 0 {
		var text []byte
		var m *dialect.Marker
		before := len(chunk)
		text, m, chunk = sh.scan.Next(chunk)
		sh.readBytes += int64(before - len(chunk))
		if len(text) > 0 {
			s.handleOutput(sh, text)
		}
		if m != nil {
			s.handleMarker(sh, m)
		}
	}
}

// untilQuiet returns at the terminal's end, or when all that has been printed so far has been read.
func (s *session) untilQuiet(sh *shell, eof chan struct{}, got *progress) {
	for last := int64(-1); ; {
		select {
		case <-eof:
			return
		case <-s.ended:
			return
		case <-time.After(20 * time.Millisecond):
		}
		s.box.settle(sh.proc)
		n, busy := got.now()
		if !busy && n == last {
			return
		}
		last = n
	}
}

// handleShellEnd reports the end of the shell to the command under way, and starts a fresh one.
func (s *session) handleShellEnd(sh *shell, status Status, err error) {
	s.mu.Lock()
	if s.err != nil || s.sh != sh || err == nil && !s.ready { // start reports it
		s.mu.Unlock()
		return
	}
	if err != nil { // not a shell's end: a command that has ended before keeps its result
		s.ready = false
		s.mu.Unlock()
		s.failLost(err)
		return
	}
	dead := s.cutOffLocked()
	s.ready = false
	if t := sh.inherited; t != nil {
		status.Code, s.opts.Env = 0, t.env
		if t.dir != "" {
			s.cwd = t.dir
		}
	}
	s.mu.Unlock()
	s.box.log.Info("shell ended", "session", s.id, "status", status.Code)
	r := &sandbox.Result{State: sandbox.Exited, ExitCode: status.Code, OOM: sh.oom}
	if dead != nil && dead.isJob {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Cwd = s.cwd; !dead.phase.over() {
			s.finishCommandLocked(dead, r)
		}
		return
	}
	if err := s.restart(status.Code); err != nil {
		if !errors.Is(err, sandbox.ErrLost) && !errors.Is(err, sandbox.ErrClosed) {
			err = &sandbox.LostError{Box: s.box.String(),
				Reason: "the shell ended and no other could be started", Cause: sandbox.LostEnded,
				Err: err}
		}
		s.fail(err)
		return
	}
	if dead == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Restarted, r.Cwd = true, s.cwd
	if dead.phase.killed() {
		s.commandReturnedLocked(dead, r) // kill ends it
		return
	}
	s.finishCommandLocked(dead, r)
}

// cutOffLocked returns the command that ends with the shell, if there is one; s.mu is held. One
// that the shell has not taken is left for the next shell, but not a job's: its shell was to end
// with it.
func (s *session) cutOffLocked() *command {
	c := s.cmd
	switch {
	case c != nil && c.isJob:
		return c
	case c == nil, c.phase == queued:
		s.restarted = s.restarted || s.ready
	case c.phase.over():
		s.restarted = true
	case c.phase == sent && c.tries < maxTries && !c.interruptTyped:
		// after the interrupt key, it may have run: see said
		s.advanceLocked(c, lineDropped)
		s.restarted = true
	default:
		return c
	}
	return nil
}

// restart starts a new shell after the last one's end, in the nearest directory that is still
// there.
func (s *session) restart(status int) error {
	for dir := s.cwd; ; dir = path.Dir(dir) {
		err := s.start(context.Background(), dir, status)
		if err == nil || errors.Is(err, sandbox.ErrLost) || dir == "/" || dir == "." || dir == "" {
			return err
		}
		if s.endErr() != nil {
			return s.endErr()
		}
	}
}

// failLost ends the session because its process ended without a status: the host is gone.
func (s *session) failLost(err error) {
	if s.endErr() == nil {
		s.fail(s.box.lostShell(err))
	}
}

// lostShell returns why the host is gone, as it is when a process of its ends without a status.
func (b *Box) lostShell(err error) error {
	if why := b.lostOr(err); errors.Is(why, sandbox.ErrLost) {
		return why
	}
	return &sandbox.LostError{Box: b.String(), Reason: "the shell's connection ended", Err: err}
}
