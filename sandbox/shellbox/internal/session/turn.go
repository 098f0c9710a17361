package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// Several programs may use the sessions of one host, if it is a hostapi.Sharer. One of them at a
// time has the turn of a session. It keeps the turn after a command's end, so that the next command
// costs nothing more. When another program wants the turn, the session goes away: it lets go of its
// shell, after it has stored in the note what the other program has to know. The next call of the
// session takes the turn back.

// named returns the context in which the session's shell is started.
func (s *Session) named(ctx context.Context) context.Context {
	if s.box.Sharer == nil {
		return ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return hostapi.Named(ctx, s.id, s.isNew && strings.Contains(s.id, "-"))
}

// shareLocked lets other programs have the turn of a shell's session.
func (s *Session) shareLocked(sh *shell) {
	if p, ok := sh.proc.(hostapi.SharedProcess); ok && s.box.Sharer != nil && s.job == nil {
		p.OnWanted(func() bool { return s.yield(sh, p) })
	}
}

// enter makes sure that this program has the turn of the session. It keeps the turn at least until
// leave. If another program does not give the turn away, the error is ErrBusy.
func (s *Session) enter(ctx context.Context) (leave func(), err error) {
	s.mu.Lock()
	s.users++
	away := s.away
	s.mu.Unlock()
	leave = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.users--
	}
	if !away || ctx == nil {
		return leave, nil
	}
	select {
	case s.taking <- struct{}{}:
		defer func() { <-s.taking }()
		if err = s.takeTurn(ctx); err == nil {
			return leave, nil
		}
	case <-ctx.Done():
		err = ctxerr.Of(ctx)
	}
	leave()
	return nil, err
}

// enterToResume is enter, but a command that has ended here while no call waited needs no turn.
func (s *Session) enterToResume(ctx context.Context, unseen bool) (leave func(), err error) {
	s.mu.Lock()
	known := s.away && unseen && s.unreported != nil
	s.mu.Unlock()
	if known {
		return func() {}, nil
	}
	return s.enter(ctx)
}

// TurnPause is the time between two looks for a shell that another program is about to start.
const TurnPause = 20 * time.Millisecond

// takeTurn takes the turn of a session that is away.
func (s *Session) takeTurn(ctx context.Context) error {
	for {
		s.mu.Lock()
		away, err, listed, shown := s.away, s.err, s.listed, s.shown
		s.mu.Unlock()
		if err != nil || !away {
			return err
		}
		if err := CheckContext(ctx); err != nil {
			return err
		}
		taken, err := s.box.Sharer.Take(ctx, listed, shown)
		switch {
		case err == nil:
			return s.comeBack(ctx, taken)
		case errors.Is(err, hostapi.ErrTurn):
			return fmt.Errorf("%w (%w)", sandbox.ErrBusy, err)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := s.findShell(ctx, listed.ID); err != nil {
			return err
		}
	}
}

// restartLimit is how long a session may have no shell while another program starts one. After it,
// the session has been closed.
const restartLimit = time.Second

// findShell finds the shell that another program has started in place of the one that has gone. If
// there is none, it starts one for the main session. Other sessions have been closed.
func (s *Session) findShell(ctx context.Context, gone string) error {
	for begin := time.Now(); ; {
		notes, listed, err := s.box.List(ctx)
		if err != nil {
			return err
		}
		for i, n := range notes {
			if n.ID == s.id && listed[i].ID != gone {
				s.mu.Lock()
				s.listed, s.shown = listed[i], -1
				s.mu.Unlock()
				return nil
			}
		}
		if s.id != "main" {
			if time.Since(begin) > restartLimit {
				return sandbox.ErrClosed
			}
			select { // the other program may be about to start another shell
			case <-time.After(TurnPause):
				continue
			case <-ctx.Done():
				return ctxerr.Of(ctx)
			}
		}
		s.mu.Lock()
		s.seq, s.lastAnswer, s.given = 0, 0, 0
		s.mu.Unlock()
		err = s.restart(0)
		if err == nil {
			return s.arrive()
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		select { // the other program is about to store the note
		case <-time.After(TurnPause):
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
}

// comeBack continues the session with the shell whose turn it has got.
func (s *Session) comeBack(ctx context.Context, taken hostapi.Taken) error {
	p := taken.Process.(hostapi.SharedProcess)
	n, ok := ParseNote(taken.Rows, taken.Note)
	if !ok || n.ID != s.id {
		p.Yield(false)
		return fmt.Errorf("the note of %s is not this session's", s.id)
	}
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		p.Yield(false)
		return s.err
	}
	s.opts.Env = n.Env
	if s.shown < 0 {
		s.screen = terminal.NewTail(screenTail)
	}
	s.mu.Unlock()
	if s.id == "main" {
		s.box.Env.Learn(n.Added)
	}
	var err error
	if taken.Clean && n.Idle != nil {
		err = s.continueIdle(taken.Kept, n)
	} else {
		s.mu.Lock()
		s.lastAnswer = 0
		s.mu.Unlock()
		err = s.attach(ctx, taken.Kept, n)
	}
	s.mu.Lock()
	failed := err != nil && s.err == nil && s.sh != nil && s.cmd == nil
	sh := s.sh
	if failed {
		s.goAwayLocked(sh, p)
	}
	s.mu.Unlock()
	if failed {
		p.Yield(false)
	}
	if err != nil {
		return err
	}
	return s.arrive()
}

// arrive ends the time in which the session is away. Until then, no call begins a command.
func (s *Session) arrive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sh == nil { // a cut since has cost the turn
		return fmt.Errorf("%w (%w)", sandbox.ErrBusy, hostapi.ErrTurn)
	}
	s.away = false
	return nil
}

// yieldLimit bounds the wait for the shell's answer to a question, before the turn is given away.
const yieldLimit = 2 * time.Second

// yield gives away the turn of the session whose shell is sh, and returns true. It returns false if
// a call needs the turn: the session is busy.
func (s *Session) yield(sh *shell, p hostapi.SharedProcess) bool {
	limit := time.NewTimer(yieldLimit)
	defer limit.Stop()
	for {
		s.mu.Lock()
		answer := sh.answered.Wait()
		if s.err != nil || s.sh != sh || sh.phase != phase.Ready || s.users > 0 ||
			!s.abandonedLocked() {
			s.mu.Unlock()
			return false
		}
		written := sh.commands.Idle() && sh.keys.Idle()
		if written && (s.cmd != nil || s.lastAnswer >= s.seq) {
			break
		}
		s.mu.Unlock()
		if !written { // what was accepted goes first
			ctx, cancel := context.WithTimeout(context.Background(), yieldLimit)
			err := sh.awaitWritten(ctx)
			cancel()
			if err != nil {
				return false
			}
			continue
		}
		select { // the shell has been asked, and is about to answer
		case <-answer:
		case <-sh.ended:
			return false
		case <-s.ended:
			return false
		case <-limit.C:
			return false
		}
	}
	idle := &idleNote{Seq: s.seq, Status: s.status, Cwd: s.cwd, Alternate: s.alternate,
		Bash: sh.dialect.Bash, HighFD: sh.dialect.HighFD, TTY: sh.dialect.TTY, Pipe: sh.pipe,
		Image: sh.image}
	if s.cmd != nil || sh.idleTimer != nil {
		idle = nil
	}
	if c := s.unreported; idle != nil && c != nil && c.sh == sh && c.result != nil {
		idle.Last, idle.LastResult, s.unreported = c.seq, c.result, nil
	}
	s.goAwayLocked(sh, p)
	s.mu.Unlock()
	s.storeNoteWith(sh, idle)
	p.Yield(idle != nil)
	return true
}

// abandonedLocked reports whether no call here is about the unfinished command, and nothing here
// must get its output.
func (s *Session) abandonedLocked() bool {
	c := s.cmd
	return c == nil || c.calls == 0 && c.phase == phase.Running && len(c.follows) == 0
}

// errTurnLost is the error of a call whose command another program has while it goes on.
var errTurnLost = fmt.Errorf("another program has taken the session while the connection was "+
	"cut: Wait for the command: %w", sandbox.ErrCut)

// goAwayLocked lets go of the session's shell.
func (s *Session) goAwayLocked(sh *shell, p hostapi.SharedProcess) {
	s.away, s.sh, s.listed, s.shown = true, nil, p.Listed(), p.Offset()
	if sh.idleTimer != nil {
		sh.idleTimer.Stop()
	}
	if c := s.cmd; c != nil {
		s.shown = -1 // so that all of its output is read again
		s.cmd, c.lost = nil, errTurnLost
		if !c.phase.Over() {
			s.advanceLocked(c, phase.Finished)
			c.completeLocked(nil)
		}
		c.limitWriters()
		s.logEndLocked(c, nil, errTurnLost)
	}
}

// goneLocked finds out whether another program has the shell of the session, or has closed the
// session. If so, it deals with that and returns true.
func (s *Session) goneLocked(sh *shell) bool {
	p, ok := sh.proc.(hostapi.SharedProcess)
	if !ok || s.job != nil || s.box.Sharer == nil {
		return false
	}
	switch why := p.Gone(); {
	case errors.Is(why, hostapi.ErrTurn):
		s.goAwayLocked(sh, p)
	case errors.Is(why, fs.ErrNotExist):
		s.readers.Go(func() { s.leaveBox() })
	default:
		return false
	}
	return true
}

// FromOther returns a session of another program, which has its turn.
func FromOther(box *Box, n Note, l hostapi.Listed) *Session {
	s := FromNote(box, n, l.Rows, l.Cols)
	s.cwd = n.Dir
	s.away, s.listed, s.shown = true, l, -1
	return s
}

// Seen records whether the host has listed the session. It reports whether another program has
// closed the session: while another one may have the turn, the host has not listed it twice. Once
// may be while that program starts its shell again. The main session is never closed so.
func (s *Session) Seen(listed bool) (closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.away && !listed && s.id != "main" && len(s.taking) == 0
	closed = gone && s.missing
	s.missing = gone
	return closed
}

// Missing reports whether another program may have the turn, and the host has not listed the
// session when it was asked last.
func (s *Session) Missing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missing && s.away
}

// dropLimit bounds the question that ends a session which is away.
const dropLimit = 10 * time.Second

// dropAway ends the shell of a session that is away.
func (s *Session) dropAway() {
	s.mu.Lock()
	away := s.away
	s.mu.Unlock()
	if !away {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
	defer cancel()
	notes, listed, err := s.box.List(ctx)
	if err != nil {
		return
	}
	for i, n := range notes {
		if n.ID == s.id {
			s.box.Sharer.Drop(ctx, listed[i])
		}
	}
}
