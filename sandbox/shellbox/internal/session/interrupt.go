package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// interruptOther interrupts the command of a session that another program uses, and returns when
// this program has the turn. Like a killing, it interrupts each program in the foreground twice,
// half of Options.Grace apart: a shell between two programs may have missed the first. What ignores
// that is for the other program, or for ctx.
func (s *Session) interruptOther(ctx context.Context) error {
	grace, foreground, sent := s.box.Grace, -1, 0
	var last time.Time
	for {
		s.mu.Lock()
		p := s.box.Sharer.Asked(s.listed)
		s.mu.Unlock()
		l, err := s.box.Processes.Look(p)
		if l.Foreground != foreground {
			foreground, sent = l.Foreground, 0
		}
		// A shell that reads its pipe gets no interrupt, because it would drop a part of a line.
		if err == nil && !l.Gone && l.Reads == "" && sent < 2 &&
			(sent == 0 || time.Since(last) > grace/2) && s.box.Processes.Interrupt(p) {
			sent, last = sent+1, time.Now()
		}
		leave, err := s.enter(ctx)
		if err == nil {
			leave()
			return nil
		}
		if !errors.Is(err, hostapi.ErrTurn) {
			return err
		}
		select {
		case <-time.After(TurnPause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctxerr.Of(ctx), sandbox.ErrBusy)
		}
	}
}
