package shellbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// Join attaches to what other programs have running on the host, as Attach does, and leaves it to
// them too. Each program has its own Runs, copies and connections. Sessions and jobs are shared by
// their ids: what one program has begun, Session and Job of the others find. One program at a time
// uses a session. While a call of it is under way, calls of others return ErrBusy, but for
// Interrupt: it sends the interrupt, waits until the other program's call has returned, which gets
// the output, and returns the status. Between calls the session is free for all, also if a command
// is unfinished: Wait, Input, Screen and Interrupt of any program go on with it. If the shell of a
// session has ended, and no program has started another after a second, the session is closed.
// Any number may follow a job. In a box that keeps the logs of jobs (Keep), a job that one program
// has forgotten is gone for all.
//
// Both programs, and the one that has made the box, have to be of the same version of this module.
//
// Close of the Box leaves everything running, as Detach does.
//
// Only hosts of this module can be joined: for any other, the error is errors.ErrUnsupported.
func Join(ctx context.Context, host Host, opts Options) (*Box, error) {
	if _, ok := host.(hostapi.Sharer); !ok {
		return nil, fmt.Errorf("join: %w: the host's programs cannot be shared",
			errors.ErrUnsupported)
	}
	b := newBox(host, opts, nil, "")
	b.joined, b.tag = true, strings.ToLower(rand.Text()[:8])
	for {
		err := b.refresh(ctx)
		b.mu.Lock()
		b.session = b.sessions["main"]
		b.mu.Unlock()
		if err == nil && b.session != nil {
			return b, nil
		}
		if err == nil {
			b.session, err = b.open(ctx, "main", nil, sandbox.NewSessionOptions())
		}
		if err == nil {
			return b, nil
		}
		if errors.Is(err, fs.ErrExist) {
			select { // another program is about to store the note of the main session
			case <-time.After(session.TurnPause):
				continue
			case <-ctx.Done():
				err = ctxerr.Of(ctx)
			}
		}
		b.abandon(nil)
		return nil, fmt.Errorf("join: %w", err)
	}
}

// Shared reports whether other programs may use the box too.
func (b *Box) Shared() bool {
	sharer := b.shared.Sharer
	return sharer != nil && sharer.Shared()
}

// lookAround finds the sessions and jobs of other programs, if there may be any. It reports whether
// it has.
func (b *Box) lookAround() bool {
	if !b.Shared() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), processes.QuestionLimit)
	defer cancel()
	ctx, done, err := b.beginCall(hostapi.Unnoticed(ctx))
	if err != nil {
		return false
	}
	defer done()
	if err := b.refresh(ctx); err != nil {
		b.log.Warn("other programs' sessions were not looked for", "error", err)
		return false
	}
	return true
}

// refresh learns of the sessions and jobs of other programs.
func (b *Box) refresh(ctx context.Context) error {
	b.refreshing.Lock()
	defer b.refreshing.Unlock()
	notes, listed, err := b.shared.List(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	if len(notes) > 0 && b.session == nil && len(b.sessions) == 0 {
		b.shared.Adopt(notes[0])
	}
	there := map[string]bool{}
	var jobs []int
	for i, n := range notes {
		there[n.ID] = true
		b.countLocked(n.ID)
		if b.session == nil {
			b.env.Learn(n.Added)
		}
		known := b.sessions[n.ID] != nil || b.knownJobLocked(n.ID) != nil
		switch {
		case known:
		case n.Job != "":
			jobs = append(jobs, i)
		default:
			b.sessions[n.ID] = session.FromOther(b.shared, n, listed[i])
		}
	}
	var closed []*session.Session
	for id, s := range b.sessions {
		if s.Seen(there[id]) {
			closed = append(closed, s)
			delete(b.sessions, id)
		}
	}
	forgotten := b.forgottenLocked(there)
	b.mu.Unlock()
	for _, s := range closed {
		s.Fail(sandbox.ErrClosed)
	}
	for _, j := range forgotten {
		j.Release()
	}
	for _, i := range jobs {
		taken, err := b.shared.Sharer.Take(ctx, listed[i], -1)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := b.attachSession(ctx, taken.Kept, notes[i]); err != nil {
			return err
		}
	}
	return nil
}

// forgottenLocked removes the jobs that other programs have forgotten, and returns them. A job that
// is no longer there has been there before: its note may be on its way.
func (b *Box) forgottenLocked(there map[string]bool) (forgotten []*job) {
	keeps := b.shared.Sharer.KeepsLogs()
	b.jobs = slices.DeleteFunc(b.jobs, func(j *job) bool {
		gone := keeps && j.listed && !there[j.ID()] && j.HasEnded()
		j.listed = j.listed || there[j.ID()]
		if gone {
			forgotten = append(forgotten, j)
		}
		return gone
	})
	return forgotten
}

// isTaken reports whether err says that another program has given the next id of its kind to its
// own session or job. The next newID then returns a later one.
func (b *Box) isTaken(kind string, err error) bool {
	var taken *hostapi.NameTakenError
	if !errors.As(err, &taken) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[kind] = max(b.count[kind], taken.Next-1)
	return true
}
