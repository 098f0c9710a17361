package shellbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
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
			case <-time.After(turnPause):
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
	sharer := b.sharer()
	return sharer != nil && sharer.Shared()
}

// list returns the notes of all sessions and jobs on the host.
func (b *Box) list(ctx context.Context) (notes []note, listed []hostapi.Listed, err error) {
	all, err := b.sharer().Listed(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range all {
		var n note
		if l.Rows > 0 && json.Unmarshal([]byte(l.Note), &n) == nil && n.ID != "" {
			notes, listed = append(notes, n), append(listed, l)
		}
	}
	return notes, listed, nil
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
	notes, listed, err := b.list(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	if len(notes) > 0 && b.session == nil && len(b.sessions) == 0 {
		n := notes[0]
		b.mark, b.opts.Dir, b.opts.Shell = n.Mark, n.Dir, n.Shell
	}
	there := map[string]bool{}
	var jobs []int
	for i, n := range notes {
		there[n.ID] = true
		if kind, _, ok := strings.Cut(n.ID, "-"); ok {
			b.count[kind] = max(b.count[kind], numberOf(n.ID))
		}
		known := b.sessions[n.ID] != nil || slices.ContainsFunc(b.jobs, func(j *job) bool {
			return j.id == n.ID
		})
		switch {
		case known:
		case n.Job != "":
			jobs = append(jobs, i)
		default:
			b.sessions[n.ID] = newAway(b, n, listed[i])
		}
		if n.ID == "main" && b.session == nil {
			b.added = n.Added
		}
	}
	var closed []*session
	for id, s := range b.sessions {
		s.mu.Lock()
		gone := s.away && !there[id] && id != "main" && len(s.taking) == 0
		// Once may be while another program starts its shell again.
		if gone && s.missing {
			closed = append(closed, s)
		}
		s.missing = gone
		s.mu.Unlock()
	}
	forgotten := b.forgottenLocked(there)
	b.mu.Unlock()
	for _, s := range closed {
		s.leaveBox()
	}
	for _, j := range forgotten {
		j.spool.Close()
	}
	for _, i := range jobs {
		taken, err := b.sharer().Take(ctx, listed[i], -1)
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
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortFunc(b.jobs, func(a, c *job) int { return numberOf(a.id) - numberOf(c.id) })
	return nil
}

// forgottenLocked removes the jobs that other programs have forgotten, and returns them. A job that
// is no longer there has been there before: its note may be on its way.
func (b *Box) forgottenLocked(there map[string]bool) (forgotten []*job) {
	keeps := b.sharer().KeepsLogs()
	b.jobs = slices.DeleteFunc(b.jobs, func(j *job) bool {
		gone := keeps && j.listed && !there[j.id] && j.hasEnded()
		j.listed = j.listed || there[j.id]
		if gone {
			forgotten = append(forgotten, j)
		}
		return gone
	})
	return forgotten
}

// newAway returns a session of another program.
func newAway(b *Box, n note, l hostapi.Listed) *session {
	opts := sandbox.NewSessionOptions()
	opts.Rows, opts.Cols, opts.Env, opts.User = l.Rows, l.Cols, n.Env, n.User
	s := newSession(b, n.ID, opts)
	s.cwd = n.Dir
	s.away, s.listed, s.shown = true, l, -1
	return s
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
