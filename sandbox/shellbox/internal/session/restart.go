package session

import (
	"context"
	"errors"
	"path"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// handleShellEnd ends the command under way with its shell, and starts a fresh shell.
func (s *Session) handleShellEnd(sh *shell, status Status, err error) {
	s.mu.Lock()
	wasReady := sh.phase.TakesCommands()
	s.advanceShellLocked(sh, phase.ProcessEnded)
	if s.err == nil && s.sh == sh && s.goneLocked(sh) {
		s.mu.Unlock()
		return
	}
	if s.err != nil || s.sh != sh || err == nil && !wasReady { // start reports it
		s.mu.Unlock()
		return
	}
	if err != nil { // not a shell's end: a command that has ended before keeps its result
		s.mu.Unlock()
		s.failLost(err)
		return
	}
	ending := s.cutOffLocked()
	if t := sh.inherited; t != nil {
		status.Code, s.opts.Env = 0, t.env
		if t.dir != "" {
			s.cwd = t.dir
		}
	}
	s.mu.Unlock()
	s.box.Log.Info("shell ended", "session", s.id, "status", status.Code)
	r := &sandbox.Result{State: sandbox.Exited, ExitCode: status.Code, OOM: sh.oom}
	if ending != nil && ending.isJob {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Cwd = s.cwd; !ending.phase.Over() {
			s.finishCommandLocked(ending, r)
		}
		return
	}
	if err := s.restart(status.Code); err != nil {
		if !errors.Is(err, sandbox.ErrLost) && !errors.Is(err, sandbox.ErrClosed) {
			err = &sandbox.LostError{Box: s.box.Name,
				Reason: "the shell ended and no other could be started", Cause: sandbox.LostEnded,
				Err: err}
		}
		s.Fail(err)
		return
	}
	if ending == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Restarted, r.Cwd = true, s.cwd
	if ending.phase.Killed() {
		s.commandReturnedLocked(ending, r) // kill ends it
		return
	}
	s.finishCommandLocked(ending, r)
}

// failLost ends the session because its process has ended without a status: the host is gone.
func (s *Session) failLost(err error) {
	if s.endErr() == nil {
		s.Fail(s.box.lostShell(err))
	}
}

// lostShell returns why the host is gone after a process has ended without a status.
func (b *Box) lostShell(err error) error {
	if why := b.Lost(err); errors.Is(why, sandbox.ErrLost) {
		return why
	}
	return &sandbox.LostError{Box: b.Name, Reason: "the shell's connection ended", Err: err}
}

// cutOffLocked returns the command that ends with the shell, or nil. A command that the shell has
// not taken is left to the next shell. But a job's command is not, because its shell was to end
// with it.
func (s *Session) cutOffLocked() *command {
	c := s.cmd
	switch {
	case c != nil && c.isJob:
		return c
	case c == nil, c.phase == phase.Queued, c.phase.Over():
	case c.phase == phase.Sent && c.tries < maxSends && !c.interruptTyped:
		// after the interrupt key, it may have run: see endMarkerLocked
		s.advanceLocked(c, phase.LineDropped)
	default:
		return c
	}
	s.restarted = true
	return nil
}

// restart starts a fresh shell after the last one's end, in the nearest directory that still
// exists. status is that of the last one.
func (s *Session) restart(status int) error {
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

// An inheritance is what a fresh shell takes over from one that it replaces.
type inheritance struct {
	dir string
	env []string
}

// replaceExecedLocked replaces an interactive shell that exec has put in the place of ours by a
// fresh one, with its directory and environment.
func (s *Session) replaceExecedLocked(sh *shell) {
	if sh.phase != phase.Ready {
		return
	}
	s.advanceShellLocked(sh, phase.ExecFound)
	sh.inherited = &inheritance{}
	s.readers.Go(func() {
		dir, env := s.box.Processes.Program(sh.pid)
		s.mu.Lock()
		sh.inherited.dir, sh.inherited.env = dir, env
		s.mu.Unlock()
		s.box.Processes.Send([]int{sh.pid}, proc.SIGKILL)
	})
}
