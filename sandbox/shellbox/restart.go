package shellbox

import (
	"context"
	"errors"
	"path"

	"github.com/sandshell/sandshell/sandbox"
)

// handleShellEnd ends the command under way with its shell, and starts a fresh shell.
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

// cutOffLocked returns the command that ends with the shell, or nil. A command that the shell has
// not taken is left to the next shell. But a job's command is not, because its shell was to end
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

// restart starts a fresh shell after the last one's end, in the nearest directory that still
// exists. status is that of the last one.
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

// failLost ends the session because its process has ended without a status: the host is gone.
func (s *session) failLost(err error) {
	if s.endErr() == nil {
		s.fail(s.box.lostShell(err))
	}
}

// lostShell returns why the host is gone after a process has ended without a status.
func (b *Box) lostShell(err error) error {
	if why := b.lostOr(err); errors.Is(why, sandbox.ErrLost) {
		return why
	}
	return &sandbox.LostError{Box: b.String(), Reason: "the shell's connection ended", Err: err}
}
