package shellbox

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/sandbox"
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
func (b *Box) open(ctx context.Context, id string, j *job,
	opts sandbox.SessionOptions) (*session, error) {
	s, err := b.openSession(ctx, id, j, opts)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", id, err)
	}
	return s, nil
}

func (b *Box) openSession(ctx context.Context, id string, j *job,
	opts sandbox.SessionOptions) (*session, error) {
	if err := environ.Check("Env", opts.Env); err != nil {
		return nil, err
	}
	if err := checkSize(opts.Rows, opts.Cols); err != nil {
		return nil, err
	}
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if opts.User, err = b.userFor(opts.User); err != nil {
		return nil, err
	}
	s := newSession(b, id, opts)
	s.job, s.isNew = j, true
	err = b.startIn(opts.Dir, opts.User, func(dir string) error {
		s.opts.Dir = dir
		return s.start(ctx, dir, 0)
	})
	if err != nil {
		s.Close()
		return nil, ctxerr.Explain(ctx, err)
	}
	b.mu.Lock()
	b.sessions[id] = s
	b.mu.Unlock()
	return s, nil
}

// Session returns the open session of that id. The ids of jobs are not found. If other programs use
// the box too, Session asks the host for a session that they have opened.
func (b *Box) Session(id string) (sandbox.Session, bool) {
	for asked := false; ; asked = true {
		b.mu.Lock()
		s, ok := b.sessions[id]
		b.mu.Unlock()
		switch {
		case ok && s.job == nil:
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
		if s.job == nil && !s.isMissing() {
			sessions = append(sessions, s)
		}
	}
	slices.SortFunc(sessions, func(a, c sandbox.Session) int { // the number of main is 0
		return numberOf(a.ID()) - numberOf(c.ID())
	})
	return sessions
}

// numberOf returns the number in an id such as session-3.
func numberOf(id string) int {
	_, digits, _ := strings.Cut(id, "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// environment returns the variables that programs of the session of that id get beside the host's.
// SANDSHELL_SESSION marks everything that the session starts. When the session ends, the mark finds
// even daemons, which are no descendants of the shell.
func (b *Box) environment(id string, more []string) []string {
	env := []string{"TERM=xterm", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat"}
	env = append(env, b.opts.Env...)
	b.mu.Lock()
	env = append(env, b.added...)
	b.mu.Unlock()
	env = append(env, more...)
	return append(env, b.markOf(id))
}

// AddEnv adds variables, "NAME=value", to the environment of everything that is started later: in
// all sessions, in shells that replace one that has ended, and by a program that attaches to the
// box. If a name comes twice, the later one wins. A session's own variables win over these.
func (b *Box) AddEnv(kv ...string) {
	b.mu.Lock()
	b.added = append(b.added, kv...)
	b.mu.Unlock()
	b.noteAdded()
}

// RemoveEnv takes back what AddEnv has added, of each text the last one. What AddEnv had added
// before under the same name holds again. Sessions that are open keep what they have, and so does a
// program that has joined the box meanwhile.
func (b *Box) RemoveEnv(kv ...string) {
	b.mu.Lock()
	for _, text := range kv {
		for i, added := range slices.Backward(b.added) {
			if added == text {
				b.added = slices.Delete(slices.Clone(b.added), i, i+1)
				break
			}
		}
	}
	b.mu.Unlock()
	b.noteAdded()
}

// noteAdded keeps the variables that were added for a program that attaches to the box.
func (b *Box) noteAdded() {
	b.mu.Lock()
	main := b.session
	b.mu.Unlock()
	if main == nil {
		return
	}
	main.mu.Lock()
	sh := main.sh
	main.mu.Unlock()
	if sh != nil {
		main.storeNote(sh)
	}
}

// dir returns the directory on the host that a caller has named. A relative one starts at
// Options.Dir. If both are "", dir returns "": the host's own directory.
func (b *Box) dir(dir string) string {
	if path.IsAbs(dir) {
		return dir
	}
	return path.Join(b.opts.Dir, dir)
}

// markOf returns the mark of the session of that id. It begins with the box's mark.
func (b *Box) markOf(id string) string { return b.mark + id + "." }

// Mark returns a word that is in the environment of everything that the Box starts, and of nothing
// that another Box starts. If the program of a Box was killed, the word finds what the Box has left
// behind.
func (b *Box) Mark() string { return b.mark }

// shellArgs returns the program that sessions run.
func (b *Box) shellArgs() []string {
	args := b.opts.Shell
	switch {
	case len(args) > 0:
	case b.noBash.Load():
		args = []string{"sh"}
	default:
		args = []string{"bash"}
	}
	if len(args) == 1 && path.Base(args[0]) == "bash" {
		// no startup files: see Options.Shell
		args = []string{args[0], "--norc", "--noprofile", "--noediting", "-p"}
	}
	if slices.Contains(args[1:], "-i") {
		return args
	}
	return append(slices.Clip(args), "-i") // its commands come on a pipe
}
