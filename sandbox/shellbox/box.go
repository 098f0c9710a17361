package shellbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/files"
)

// Options are the settings of a Box; the zero value is usable.
type Options struct {
	// Dir is the directory on the host in which sessions, jobs and Runs start. "~" is not
	// expanded. If Dir is empty, they start where the host starts programs.
	Dir string
	// Env, "NAME=value", is added to the environment of all that is started, after the defaults:
	// TERM=xterm, and PAGER, GIT_PAGER and MANPAGER set to cat, so that no program waits in a
	// pager unasked.
	Env []string
	// Shell is the program that sessions run, with its arguments. "-i" is added. If Shell is
	// empty, sessions run bash, or sh where there is no bash. A program that is neither bash, dash
	// nor busybox ash is refused within a second.
	//
	// bash alone stands for {"bash", "--norc", "--noprofile", "--noediting", "-p"}. It reads no
	// startup files, so that a session is the same everywhere, starts in milliseconds, and runs no
	// prompt hooks after each command. Execute(". ~/.bashrc") reads them when they are wanted. For
	// the same reason a shell ignores ENV, SHELLOPTS, BASHOPTS, PROMPT_COMMAND, PS0 and TMOUT of
	// its environment. Programs still see ENV and BASH_ENV.
	Shell []string
	// Grace is how long a command may take to end after the interrupt key, and again after SIGTERM,
	// before the next step of killing it. If Grace is 0 or less, it is 1 s.
	Grace time.Duration
	// StartLimit is how long a shell may take to its first prompt, its startup files included. If
	// StartLimit is 0 or less, it is 30 s.
	StartLimit time.Duration
	// Logger gets events that are in no Result: a restarted shell, a lost prompt, a host without
	// /proc. At debug level it also gets each command of each session and job: its begin, each
	// Result that says Waiting, and its end, with the session's id, a number, state, exit status,
	// bytes of output and duration. It never gets a command's text, input or output. If Logger is
	// nil, nothing is logged. The Logger's Handler must not block, because the Box calls it with
	// locks held. If the Handler panics, its record is lost.
	Logger *slog.Logger
}

// A Box is a sandbox on a Host. Its own Session methods are those of its main session.
type Box struct {
	session *session // the main one

	host      Host
	opts      Options
	log       *slog.Logger
	mark      string // see environment
	processes hostapi.Processes
	files     *files.Files
	control   *controlled // that is processes; nil if the host is
	owner     *Box        // whose host it is, for a box from AsUser; else nil
	user      string      // who runs what names no user; "": the host's own
	noBash    atomic.Bool // there is no bash on the host

	mu        sync.Mutex
	closed    bool
	detached  bool
	added     []string            // by AddEnv
	hostENV   map[string]envValue // ENV as the host gives it to programs, by user
	closing   chan struct{}       // closed when Close begins
	sessions  map[string]*session
	jobs      []*job
	count     map[string]int // of sessions, jobs and Runs, for their ids
	calls     sync.WaitGroup // Runs, copies, connections being made
	calling   atomic.Int64   // how many of them
	commands  atomic.Int64   // how many there have been, for the log
	touched   atomic.Int64   // when something last began or ended, in nanoseconds since 1970
	conns     map[*tracked]struct{}
	listeners map[*listener]struct{}
	views     map[*Box]struct{} // from AsUser
	down      chan struct{}     // closed when Close is done
	downErr   error
}

var _ sandbox.Sandbox = (*Box)(nil)

// New starts the main session on the host. The Box owns the host: Close closes it, and so does a
// New that fails. ctx governs the start.
func New(ctx context.Context, host Host, opts Options) (*Box, error) {
	b := newBox(host, opts)
	var main *session
	err := errors.Join(environ.Check(opts.Env), checkDir(opts.Dir))
	if err == nil {
		main, err = b.open(ctx, "main", nil, sandbox.NewSessionOptions())
	}
	if err != nil {
		b.closed = true
		b.shutDown()
		return nil, err
	}
	b.session = main
	return b, nil
}

func newBox(host Host, opts Options) *Box {
	if opts.Grace <= 0 {
		opts.Grace = time.Second
	}
	if opts.StartLimit <= 0 {
		opts.StartLimit = 30 * time.Second
	}
	b := &Box{
		host: host, opts: opts, log: guard.Logger(opts.Logger),
		mark:      "SANDSHELL_SESSION=" + rand.Text() + ".",
		closing:   make(chan struct{}),
		down:      make(chan struct{}),
		sessions:  map[string]*session{},
		hostENV:   map[string]envValue{},
		count:     map[string]int{},
		conns:     map[*tracked]struct{}{},
		listeners: map[*listener]struct{}{},
		views:     map[*Box]struct{}{},
	}
	var ok bool
	if b.processes, ok = host.(hostapi.Processes); !ok {
		b.control = newControlled(host)
		b.processes = b.control
	}
	b.files = b.newFiles()
	b.touch()
	return b
}

// environment returns the variables that are added to the host's for programs of the session of
// that id. SANDSHELL_SESSION marks all that the session starts. By it the end of the session finds
// even a daemon, which is no descendant of the shell.
func (b *Box) environment(id string, more []string) []string {
	env := []string{"TERM=xterm", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat"}
	env = append(env, b.opts.Env...)
	b.mu.Lock()
	env = append(env, b.added...)
	b.mu.Unlock()
	env = append(env, more...)
	return append(env, b.markOf(id))
}

// AddEnv adds variables, "NAME=value", to the environment of all that is started later in every
// session. They are also added for shells that replace one that ended, and by a program that
// attaches to the box. A later variable of the same name wins. A session's own variables win over
// these.
func (b *Box) AddEnv(kv ...string) {
	b.mu.Lock()
	b.added = append(b.added, kv...)
	main := b.session
	b.mu.Unlock()
	if main == nil {
		return
	}
	main.mu.Lock()
	sh := main.sh
	main.mu.Unlock()
	if sh != nil {
		main.note(sh)
	}
}

// dir returns the directory on the host that a caller means. A relative one starts at Options.Dir.
func (b *Box) dir(dir string) string {
	if path.IsAbs(dir) {
		return dir
	}
	return path.Join(b.opts.Dir, dir) // "" if both are: the host's own
}

// markOf returns the mark of the session of that id. It begins with the box's mark.
func (b *Box) markOf(id string) string { return b.mark + id + "." }

// Mark returns a word that is in the environment of all that the Box starts, and in that of no
// other Box. By it Processes.Marked finds what is left of a Box whose program was killed.
func (b *Box) Mark() string { return b.mark }

// String returns the kind of sandbox, as the Host does.
func (b *Box) String() string { return b.host.String() }

// Open implements sandbox.Sandbox.
func (b *Box) Open(ctx context.Context, opts ...sandbox.SessionOption) (sandbox.Session, error) {
	s, err := b.open(ctx, b.newID("session"), nil, sandbox.NewSessionOptions(opts...))
	if err != nil {
		return nil, err
	}
	return s, nil
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
	if err := environ.Check(opts.Env); err != nil {
		return nil, fmt.Errorf("open %s: %w", id, err)
	}
	if opts.Rows <= 0 || opts.Cols <= 0 || opts.Rows > 10000 || opts.Cols > 10000 {
		return nil, fmt.Errorf("open %s: a terminal of %d rows and %d columns cannot be: give 1 "+
			"to 10000 each", id, opts.Rows, opts.Cols)
	}
	ctx, done, err := b.call(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", id, err)
	}
	defer done()
	if opts.User, err = b.as(opts.User); err != nil {
		return nil, fmt.Errorf("open %s: %w", id, err)
	}
	s := newSession(b, id, opts)
	s.job = j
	err = b.startIn(opts.Dir, opts.User, func(dir string) error {
		s.opts.Dir = dir
		return s.start(ctx, dir, 0)
	})
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open %s: %w", id, ctxerr.Explain(ctx, err))
	}
	b.mu.Lock()
	b.sessions[id] = s
	b.mu.Unlock()
	return s, nil
}

// call begins a call that Close waits for. The context that it returns ends with ctx or when Close
// begins, then with ErrClosed as its cause.
func (b *Box) call(ctx context.Context) (context.Context, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, sandbox.ErrClosed
	}
	if err := checkContext(ctx); err != nil {
		return nil, nil, err
	}
	b.calls.Add(1)
	seen := noticed(ctx)
	if seen {
		b.calling.Add(1)
		b.touch()
	}
	ctx, cancel := ctxerr.WithCancel(ctx)
	stop := make(chan struct{})
	b.calls.Go(func() {
		select {
		case <-b.closing:
			cancel(sandbox.ErrClosed)
		case <-stop:
		}
	})
	return ctx, func() {
		close(stop)
		cancel(nil)
		if seen {
			b.touch()
			b.calling.Add(-1)
		}
		b.calls.Done()
	}, nil
}

// Close ends all sessions, jobs and calls with all processes that they started, and closes the
// host. It returns when everything is gone. Later calls wait for the first and return what it
// returned.
func (b *Box) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		<-b.down
		return b.downErr
	}
	b.closed = true
	b.mu.Unlock()
	b.downErr = b.shutDown()
	close(b.down)
	return b.downErr
}

func (b *Box) shutDown() error {
	close(b.closing)
	b.calls.Wait()
	b.closeViews()
	b.mu.Lock()
	sessions := b.sessions
	b.sessions = map[string]*session{}
	jobs, detached := b.jobs, b.detached
	b.mu.Unlock()
	b.closeConnections()
	b.files.CloseWatches()
	for _, s := range sessions {
		s.fail(sandbox.ErrClosed)
	}
	if len(sessions)+len(jobs) > 0 && !detached {
		b.killMarked(b.mark)
	}
	for _, s := range sessions {
		s.release()
	}
	for _, j := range jobs {
		j.release()
	}
	b.files.Close() // before control: what is under way by a shell is killed
	if b.control != nil {
		b.control.Close()
	}
	return b.release()
}

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
