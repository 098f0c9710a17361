package shellbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// Attach takes over what another program has left running on the host: its sessions with their
// directories, variables and unfinished commands, and its jobs with their logs. The Box owns the
// host, as after New. The Dir and Shell of the other program replace those of opts.
//
// A session's unfinished command goes on. Wait, Input and Interrupt work, with as much of its
// output as the host has kept. If it has ended in between, Wait returns its result. That may be one
// that the other program has got too, if it was killed within 20 ms after that. Attach ends the
// Runs that the other program had under way.
//
// If Attach fails, sessions and jobs run on, and the caller still owns the host, to close it or to
// let go of it. Only hosts of this module can be attached to: for any other, the error is
// errors.ErrUnsupported.
func Attach(ctx context.Context, host Host, opts Options) (*Box, error) {
	keeper, ok := host.(hostapi.Keeper)
	if !ok {
		return nil, fmt.Errorf("attach: %w: the host's programs do not outlive a connection",
			errors.ErrUnsupported)
	}
	b := newBox(host, opts, nil, "")
	kept, err := keeper.Kept(ctx)
	fail := func(err error) (*Box, error) {
		b.abandon(kept)
		return nil, fmt.Errorf("attach: %w", err)
	}
	if err != nil {
		return fail(err)
	}
	notes := make([]session.Note, len(kept))
	for i, k := range kept {
		n, ok := session.ParseNote(k.Rows, k.Note)
		if !ok {
			if !k.Ended {
				b.processes.KillTree(k.Process.PID()) // no session's: a Run
			}
			k.Process.Close()
			continue
		}
		notes[i] = n
		b.shared.Adopt(n)
		b.env.Learn(n.Added)
	}
	for i, n := range notes {
		if n.ID == "" {
			continue
		}
		b.countLocked(n.ID)
		if err := b.attachSession(ctx, kept[i], n); err != nil {
			return fail(fmt.Errorf("%s: %w", n.ID, err))
		}
	}
	b.mu.Lock()
	b.session = b.sessions["main"]
	b.mu.Unlock()
	if b.session != nil {
		return b, nil
	}
	if b.session, err = b.open(ctx, "main", nil, sandbox.NewSessionOptions()); err != nil {
		return fail(err)
	}
	return b, nil
}

// abandon undoes a failed Attach. It lets go of the host's processes, and ends what the Box has
// begun with them.
func (b *Box) abandon(kept []hostapi.Kept) {
	b.mu.Lock()
	b.closed = true
	sessions, jobs := b.sessions, b.jobs
	b.sessions = map[string]*session.Session{}
	b.mu.Unlock()
	close(b.closing)
	b.calls.Wait()
	for _, s := range sessions {
		s.Fail(sandbox.ErrClosed)
	}
	for _, k := range kept {
		k.Process.Detach()
	}
	for _, s := range sessions {
		s.Release()
	}
	for _, j := range jobs {
		j.Release()
	}
	if b.control != nil {
		b.control.Close()
	}
}

// attachSession makes a session, or a job, of a kept process.
func (b *Box) attachSession(ctx context.Context, k hostapi.Kept, n session.Note) error {
	s := session.FromNote(b.shared, n, k.Rows, k.Cols)
	b.addSession(s)
	if err := s.Attach(ctx, k, n); err != nil {
		return err
	}
	if j := s.Job(); j != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.addJobLocked(j)
	}
	return nil
}
