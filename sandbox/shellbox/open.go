package shellbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// Open implements sandbox.Sandbox.
func (b *Box) Open(ctx context.Context, opts ...sandbox.SessionOption) (sandbox.Session, error) {
	for {
		s, err := b.open(ctx, b.newID("session"), nil, sandbox.NewSessionOptions(opts...))
		if err == nil {
			return s, nil
		}
		if !b.isTaken("session", err) {
			return nil, err
		}
	}
}

// newID returns the next id of its kind.
func (b *Box) newID(kind string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[kind]++
	return fmt.Sprintf("%s-%d", kind, b.count[kind])
}

// open opens a session for the job j, or for callers if j is nil.
func (b *Box) open(ctx context.Context, id string, j *session.Job,
	opts sandbox.SessionOptions) (*session.Session, error) {
	s, err := b.openSession(ctx, id, j, opts)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", id, err)
	}
	return s, nil
}

func (b *Box) openSession(ctx context.Context, id string, j *session.Job,
	opts sandbox.SessionOptions) (*session.Session, error) {
	if err := environ.Check("Env", opts.Env); err != nil {
		return nil, err
	}
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	switch {
	case opts.Pipes && j == nil:
		return nil, errors.New("a session has a terminal: leave out Pipes, which is for Background")
	case opts.Pipes && opts.Like != nil:
		return nil, fmt.Errorf("%w: Pipes with Like: what a shell has only goes to a shell on a "+
			"terminal", errors.ErrUnsupported)
	}
	named := opts
	like, err := b.like(ctx, &opts)
	if err != nil {
		return nil, ctxerr.Explain(ctx, err)
	}
	if err := session.CheckSize(opts.Rows, opts.Cols); err != nil {
		return nil, err
	}
	if opts.User, err = b.userFor(opts.User); err != nil {
		return nil, err
	}
	opts.Like = nil // so that this session does not keep the other one
	s := session.New(b.shared, id, opts, j)
	if like == nil {
		err = b.start(ctx, s)
	} else {
		err = b.startLike(ctx, s, like, named)
	}
	if err != nil {
		s.Drop(err, like != nil)
		return nil, ctxerr.Explain(ctx, err)
	}
	b.addSession(s)
	return s, nil
}

func (b *Box) addSession(s *session.Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[s.ID()] = s
}

// leave removes a session that ends, and reports whether it was there.
func (b *Box) leave(id string) (open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, open = b.sessions[id]
	delete(b.sessions, id)
	return open
}

// Session returns the open session of that id. The ids of jobs are not found. If other programs use
// the box too, Session asks the host for a session that they have opened.
func (b *Box) Session(id string) (sandbox.Session, bool) {
	for asked := false; ; asked = true {
		b.mu.Lock()
		s, ok := b.sessions[id]
		b.mu.Unlock()
		switch {
		case ok && s.Job() == nil:
			return s, true
		case asked || ok || !b.lookAround():
			return nil, false
		}
	}
}

// Sessions returns the open sessions, the main one first.
func (b *Box) Sessions() []sandbox.Session {
	b.lookAround()
	b.mu.Lock()
	defer b.mu.Unlock()
	var sessions []sandbox.Session
	for _, s := range b.sessions {
		if s.Job() == nil && !s.Missing() {
			sessions = append(sessions, s)
		}
	}
	slices.SortFunc(sessions, func(a, c sandbox.Session) int { // the number of main is 0
		return numberOf(a.ID()) - numberOf(c.ID())
	})
	return sessions
}

// start starts a session's shell in the directory of its options.
func (b *Box) start(ctx context.Context, s *session.Session) error {
	o := s.Options()
	return b.startIn(o.Dir, o.User, func(dir string) error { return s.Start(ctx, dir) })
}

// countLocked makes the ids of later sessions, or jobs, greater than id.
func (b *Box) countLocked(id string) {
	if kind, _, ok := strings.Cut(id, "-"); ok {
		b.count[kind] = max(b.count[kind], numberOf(id))
	}
}

// numberOf returns the number in an id such as session-3.
func numberOf(id string) int {
	_, digits, _ := strings.Cut(id, "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// AddEnv adds variables, "NAME=value", to the environment of everything that is started later: in
// all sessions, in shells that replace one that has ended, and by a program that attaches to the
// box. If a name comes twice, the later one wins. A session's own variables win over these.
func (b *Box) AddEnv(kv ...string) {
	b.env.Add(kv...)
	b.noteAdded()
}

// RemoveEnv takes back what AddEnv has added, of each text the last one. What AddEnv had added
// before under the same name holds again. Sessions that are open keep what they have, and so does a
// program that has joined the box meanwhile.
func (b *Box) RemoveEnv(kv ...string) {
	b.env.Remove(kv...)
	b.noteAdded()
}

// noteAdded keeps the variables that were added for a program that attaches to the box.
func (b *Box) noteAdded() {
	b.mu.Lock()
	main := b.session
	b.mu.Unlock()
	if main != nil {
		main.StoreNote()
	}
}

// dir returns the directory on the host that a caller has named. A relative one starts at
// Options.Dir. If both are "", dir returns "": the host's own directory.
func (b *Box) dir(dir string) string {
	if path.IsAbs(dir) {
		return dir
	}
	return path.Join(b.shared.Dir, dir)
}

// Mark returns a word that is in the environment of everything that the Box starts, and of nothing
// that another Box starts. If the program of a Box was killed, the word finds what the Box has left
// behind.
func (b *Box) Mark() string { return b.env.Mark }
