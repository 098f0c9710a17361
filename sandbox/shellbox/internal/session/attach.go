package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// FromNote returns the session, or the job's session, that another program has noted. It has no
// shell before Attach.
func FromNote(box *Box, n Note, rows, cols int) *Session {
	opts := sandbox.NewSessionOptions()
	opts.Env, opts.User, opts.Pipes = n.Env, n.User, n.Pipes
	if !n.Pipes {
		opts.Rows, opts.Cols = rows, cols
	}
	sandbox.MaxLog(n.MaxLog)(&opts)
	var j *Job
	if n.Job != "" {
		j = NewJob(n.Job, opts.MaxLog)
	}
	s := New(box, n.ID, opts, j)
	s.isNew = false
	return s
}

// Attach continues a session, or a job, whose shell is a kept process. n is the note of that.
//
// A session's unfinished command goes on. If the shell is at its prompt, or has ended, Attach waits
// for its answer, or starts another one. After an error nothing of the session goes on here once
// the process is detached and the session released.
func (s *Session) Attach(ctx context.Context, k hostapi.Kept, n Note) error {
	switch {
	case s.job != nil && n.Pipes:
		s.attachOnPipes(k, n)
		return nil
	case s.job != nil:
		s.attachJob(k, n)
		return nil
	}
	return s.attach(ctx, k, n)
}

// shellOf gives a session the shell that a kept process is.
func (s *Session) shellOf(k hostapi.Kept, n Note) *shell {
	sh := newShell(k.Process.(Process), dialect.New(n.Secret))
	sh.readBytes, sh.jobStart = k.Skipped, n.Head
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sh, s.cwd, s.seq, s.given = sh, n.Dir, (n.Generation+1)*generation, n.Given
	s.renewal = n.Renewal
	return sh
}

// attach continues a session whose shell is a kept process.
func (s *Session) attach(ctx context.Context, k hostapi.Kept, n Note) error {
	sh := s.shellOf(k, n)
	c := newCommand("", false)
	busy, err := s.readBacklog(k, c)
	if err != nil {
		return err
	}
	if n.Pipe == "" { // a look at a busy shell finds that out late, or not at all
		s.learnShell(sh)
	} else {
		sh.pipe, sh.image, sh.dialect.TTY = n.Pipe, n.Image, n.TTY
	}
	s.storeNote(sh)
	s.mu.Lock()
	if busy {
		s.advanceShellLocked(sh, phase.Greeted)
		c.sh, s.cmd = sh, c
		s.advanceLocked(c, phase.LineSent)
		s.advanceLocked(c, phase.OutputBegan)
		s.logBeginLocked(c, "command taken over")
		s.watchLocked(c)
	}
	// If it is not busy, the shell is at its prompt or about to be: what the other program sent
	// last may still be on its way.
	seq, _ := s.askShellLocked(sh)
	s.runLocked(sh)
	s.mu.Unlock()
	if busy {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.box.StartLimit,
		fmt.Errorf("its shell does not come back within %v: %w", s.box.StartLimit,
			context.DeadlineExceeded))
	defer cancel()
	err = s.awaitAnswer(ctx, sh, seq)
	if err == nil {
		s.discard(sh)
		s.mu.Lock()
		s.lastEnd = time.Now() // of the other program's commands
		// The other program may have ended without a word to its caller.
		if c.result != nil && c.seq > s.given {
			s.keepUnreportedLocked(c, c.result)
		}
		s.mu.Unlock()
		if s.adopt(sh) {
			return nil
		}
		err = s.earlyEndError(sh)
	}
	if errors.Is(err, sandbox.ErrLost) || ctx.Err() != nil {
		return err
	}
	s.mu.Lock()
	s.restarted = true
	s.mu.Unlock()
	return s.restart(sh.status.Code)
}

// readBacklog reads what the host has kept of a session's output. It reports whether a command is
// under way. The command's output goes to c, as does that of the last command that has ended, with
// its number and result.
func (s *Session) readBacklog(k hostapi.Kept, c *command) (busy bool, err error) {
	limit := time.AfterFunc(s.box.StartLimit, func() { k.Process.Detach() })
	defer limit.Stop()
	sh := s.sh
	// Unless a marker says otherwise, a command is under way. But if the session went away from
	// here at its prompt, and nothing is missing, it still is there.
	busy = !(s.away && s.shown >= 0 && k.Skipped <= s.shown)
	sh.statusStale = !busy
	begun := busy && k.Skipped > 0 // its Begin marker may no longer be kept
	c.out.SetSize(s.rows, s.cols)
	buf := make([]byte, 32<<10)
	for rest := k.Backlog; rest > 0; {
		n, err := sh.proc.Stdout().Read(buf[:min(rest, int64(len(buf)))])
		rest -= int64(n)
		sh.readBytes += int64(n)
		for chunk := buf[:n]; len(chunk) > 0; {
			var text []byte
			var m *dialect.Marker
			text, m, chunk = sh.scan.Next(chunk)
			if busy {
				s.screen.Write(text)
				c.out.Write(text)
			}
			if m == nil || m.Seq <= s.lastAnswer {
				continue
			}
			if m.Kind == dialect.Begin {
				c.out.Reset()
				c.seq, c.result, begun = m.Seq, nil, true
			} else {
				s.cwd, s.lastAnswer = m.Dir, m.Seq
				if !sh.statusStale {
					s.status = m.Status
				}
				if busy && begun {
					c.result = &sandbox.Result{State: sandbox.Exited, ExitCode: m.Status,
						Cwd: m.Dir}
					if c.seq == unknownSeq {
						c.seq = m.Seq
					}
				}
			}
			busy = m.Kind == dialect.Begin
			sh.statusStale = !busy
		}
		if errors.Is(err, io.EOF) {
			break // the shell has ended: the reader learns of it
		}
		if err != nil {
			return busy, err
		}
	}
	return busy, nil
}

// attachJob continues a job. All output that the host has kept is read again.
func (s *Session) attachJob(k hostapi.Kept, n Note) {
	j, sh := s.job, s.shellOf(k, n)
	j.newCommand()
	c := j.cmd
	c.offset = -1
	s.mu.Lock()
	defer s.mu.Unlock()
	// The answer to its hello is read first, and has the number of another program's line. What
	// begins after it is the command.
	s.advanceShellLocked(sh, phase.Greeted)
	c.sh, s.cmd = sh, c
	s.advanceLocked(c, phase.LineSent)
	if k.Skipped > 0 && k.Skipped >= n.Head { // the Begin marker is among those bytes
		s.advanceLocked(c, phase.OutputBegan)
		j.spool.Skip(k.Skipped - n.Head)
	}
	s.logBeginLocked(c, "command taken over")
	s.watchLocked(c)
	s.runLocked(sh)
	go j.run()
}
