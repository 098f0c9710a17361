package shellbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/boxenv"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/files"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/network"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// Options are the settings of a Box; the zero value is usable.
type Options struct {
	// Dir is the directory on the host in which sessions, jobs and Runs start. "~" is not
	// expanded. If Dir is empty, they start where the host starts programs.
	Dir string
	// Env, "NAME=value", is added to the environment of every program, after the defaults:
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
	// before the next step of killing it. Where looks at its processes take long, it gets longer.
	// If Grace is 0 or less, it is 1 s.
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

func (o *Options) check() error {
	if err := environ.Check("Options.Env", o.Env); err != nil {
		return fmt.Errorf("shellbox: %w", err)
	}
	if err := checkDir(o.Dir); err != nil {
		return fmt.Errorf("shellbox: Options.Dir: %w", err)
	}
	return nil
}

// A Box is a sandbox on a Host. Its own Session methods are those of its main session.
type Box struct {
	session *session.Session // the main session

	host      Host
	opts      Options
	log       *slog.Logger
	env       *boxenv.Env
	shared    *session.Box // what all sessions need
	processes *processes.Host
	files     *files.Files
	network   *network.Network
	control   *controlled // answers about processes; nil if the host does so itself
	owner     *Box        // the box whose host this one uses (AsUser); nil: the host is its own
	user      string      // the user as whom programs run by default; "": the host's own
	joined    bool        // by Join
	tag       string      // tells the Runs of a Box from Join from those of others

	refreshing sync.Mutex // held during refresh

	mu       sync.Mutex
	closed   bool
	detached bool
	closing  chan struct{} // closed when Close begins
	sessions map[string]*session.Session
	jobs     []*job
	count    map[string]int    // the last number of each kind of id
	calls    sync.WaitGroup    // Runs, copies and connections being made
	calling  atomic.Int64      // the number of calls that are Activity
	touched  atomic.Int64      // when something last began or ended, in nanoseconds since 1970
	views    map[*Box]struct{} // the boxes from AsUser
	down     chan struct{}     // closed when Close is done
	downErr  error
}

var _ sandbox.Sandbox = (*Box)(nil)

// New starts the main session on the host. The Box owns the host: Close closes it, and so does a
// New that fails. ctx governs the start.
func New(ctx context.Context, host Host, opts Options) (*Box, error) {
	if host == nil {
		return nil, errors.New("shellbox: New: the host is nil")
	}
	b := newBox(host, opts, nil, "")
	var main *session.Session
	err := opts.check()
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

// newBox returns a Box without a main session. owner and user are set for a box from AsUser.
func newBox(host Host, opts Options, owner *Box, user string) *Box {
	if opts.Grace <= 0 {
		opts.Grace = time.Second
	}
	if opts.StartLimit <= 0 {
		opts.StartLimit = 30 * time.Second
	}
	b := &Box{
		host: host, opts: opts, owner: owner, user: user, log: guard.Logger(opts.Logger),
		env:      boxenv.New(opts.Env),
		closing:  make(chan struct{}),
		down:     make(chan struct{}),
		sessions: map[string]*session.Session{},
		count:    map[string]int{},
		views:    map[*Box]struct{}{},
	}
	asked, ok := host.(hostapi.Processes)
	if !ok {
		b.control = newControlled(host)
		asked = b.control
	}
	oom, _ := host.(hostapi.OOMTeller)
	b.processes = processes.New(asked, oom, b.log)
	b.files = b.newFiles()
	b.network = b.newNetwork()
	b.shared = b.newShared()
	b.touch()
	return b
}

// String returns the kind of sandbox, as the Host does.
func (b *Box) String() string { return b.host.String() }

// beginCall begins a call that Close waits for. The context that it returns ends with ctx. It also
// ends when Close begins, with ErrClosed as its cause.
func (b *Box) beginCall(ctx context.Context) (context.Context, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, sandbox.ErrClosed
	}
	if err := session.CheckContext(ctx); err != nil {
		return nil, nil, err
	}
	b.calls.Add(1)
	seen := hostapi.IsNoticed(ctx)
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

// Activity reports whether anything goes on in the box: an unfinished command (also one that waits
// for input), a job, a Run, a copy, an open connection of Dial. If nothing does, since is when the
// last of them ended, or when the Box was made. Activity does not look at what commands have left
// in the background.
func (b *Box) Activity() (busy bool, since time.Time) {
	busy = b.calling.Load() > 0 || b.network.Busy()
	b.mu.Lock()
	sessions := make([]*session.Session, 0, len(b.sessions))
	for _, s := range b.sessions {
		sessions = append(sessions, s)
	}
	b.mu.Unlock()
	for _, s := range sessions {
		busy = busy || s.Busy()
	}
	return busy, time.Unix(0, b.touched.Load())
}

// touch records that something begins or ends.
func (b *Box) touch() { b.touched.Store(time.Now().UnixNano()) }
