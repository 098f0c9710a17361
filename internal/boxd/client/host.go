package client

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// A Place is where a boxd runs. Its methods may be called from several goroutines.
type Place interface {
	// Join connects to boxd, as a new "boxd join" does.
	Join(ctx context.Context) (Streams, error)
	// Diagnose says what has become of the place. It is called when Join has failed.
	Diagnose(ctx context.Context) Diagnosis
}

// A Controller is a Place in which boxd has standard streams of its own, which no program of the
// place can reach. Keys are exchanged on these streams. In a Place that is not a Controller, keys
// are exchanged on the Streams that Join returns.
type Controller interface {
	Place
	// Control connects to the standard input and output of boxd.
	Control(ctx context.Context) (Streams, error)
}

// A Diagnosis is what has become of a place.
type Diagnosis struct {
	Lost   string // why the place is gone for good; "" if it may come back
	Cause  sandbox.LostCause
	Err    error // the error behind Lost; nil if there is none
	Paused bool  // its processes are frozen, so the Host waits without limit
}

// Streams are a connection to boxd.
type Streams interface {
	net.Conn
	// Said returns what has been written to the standard error beside the connection. It returns ""
	// if nothing has.
	Said() string
}

// Config says how a Host uses its boxd.
type Config struct {
	// Key is the owner's. If it is set, the streams of the first Join are those of a "boxd start"
	// with its claim. If it is nil, Connect makes one.
	Key *Key
	// Name is what String returns.
	Name string
	// Place is where the boxd runs.
	Place Place
	// Keep says that boxd does not end without its owner. Detach needs it.
	Keep bool
	// Joins says that this Host becomes an owner beside others, which stay. Close leaves the box to
	// them.
	Joins bool
	// Renews, if it is not "", is a new id for the box, which was started from a checkpoint of
	// another box. Connect then makes it a box of its own. The caller calls TakeIdentity next.
	Renews string
	// Patience is how long the Host tries to connect again after the connection was cut.
	Patience time.Duration
	// Attempt bounds the first attempt to connect again. After an attempt that took as long, the
	// next may take twice as long, within Patience. The default is 8 s.
	Attempt time.Duration
	// Logger logs cuts and new connections. It must not be nil.
	Logger *slog.Logger
}

// A Host is a shellbox.Host on a boxd. Connect makes one.
type Host struct {
	*link
	Config
	started  *Key                    // the next Join has its claim; nil: it has none
	streams  atomic.Pointer[Streams] // those of the last connection; nil before the first
	hostKey  ssh.PublicKey           // boxd's
	replaced atomic.Bool             // another boxd runs in its place
	shared   atomic.Bool             // there may be other owners
	asking   atomic.Int32            // requests under way
	closing  sync.Once
	down     chan struct{} // closed when Close is done
}

var _ hostapi.Keeper = (*Host)(nil)

// Connect makes the first connection to the boxd of c.Place and becomes its owner. Unless c.Joins
// is set, the previous owners lose the box. The Host keeps a connection until Close. ctx governs
// Connect only. Errors are those of ctx, *sandbox.LostError, and boxd's if it refuses one owner
// more.
func Connect(ctx context.Context, c Config) (*Host, error) {
	if c.Attempt <= 0 {
		c.Attempt = attemptLimit
	}
	started := c.Key
	if started == nil {
		var err error
		if c.Key, err = NewKey(); err != nil {
			return nil, err
		}
	}
	h := &Host{Config: c, started: started, down: make(chan struct{})}
	h.shared.Store(c.Joins)
	h.link = newLink(h)
	var err error
	if h.link.current, err = h.first(ctx); err != nil {
		return nil, err
	}
	h.link.watch(h.link.current)
	return h, nil
}

// firstTries is how often the first connection is tried, within some two seconds. An engine may
// take as long to notice that a container has ended.
const firstTries = 8

// first makes the first connection. Its errors are those of Connect.
func (h *Host) first(ctx context.Context) (*sshconn.Conn, error) {
	conn, err := h.openConn(ctx, true)
	for try, pause := 1, redialFirst; ; try, pause = try+1, min(2*pause, redialMost) {
		refused := errors.Is(err, errRefused) && h.hostKey == nil // as one owner too many
		if err == nil || refused || ctx.Err() != nil {
			return conn, err
		}
		if lost, _ := h.diagnose(ctx, err); lost != nil {
			return nil, lost
		}
		if try == firstTries {
			return nil, h.lostError(err, "boxd does not answer", sandbox.LostConnection)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctxerr.Of(ctx)
		}
		attempt, done := ctxerr.WithLimit(ctx, h.Attempt, noAnswer(h.Attempt))
		// If boxd has answered before, another program may have become the owner since. Then boxd
		// refuses this Host, which must not take the box back.
		conn, err = h.openConn(attempt, h.hostKey == nil)
		done()
	}
}

// diagnose says what a failed attempt to connect means. If another attempt would be of no use, lost
// says why; nil means that one may succeed. paused says that the place is paused, so that the Host
// must not give up.
func (h *Host) diagnose(ctx context.Context, dialed error) (lost error, paused bool) {
	if errors.Is(dialed, errOtherBoxd) {
		dialed = h.askBoxd(ctx)
	}
	switch {
	case errors.Is(dialed, errRefused):
		h.Abandon() // the box is the other program's
		return h.lostError(nil, "another program has taken the box over", sandbox.LostTaken), false
	case errors.Is(dialed, errOtherBoxd):
		h.replaced.Store(true)
		return h.lostError(nil, "its boxd was restarted: what ran in it has ended"+h.lastWords(),
			sandbox.LostRemoved), false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found := h.Place.Diagnose(ctx)
	if found.Lost != "" {
		return h.lostError(found.Err, found.Lost+h.lastWords(), found.Cause), false
	}
	return nil, found.Paused
}

// String returns Config.Name.
func (h *Host) String() string { return h.Name }

// Lost returns why the place is gone, as a *sandbox.LostError. It returns nil if the place is
// there, or if that is not known when ctx ends.
func (h *Host) Lost(ctx context.Context) error {
	for {
		conn, err := h.link.connection(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return h.explain(err)
		case !conn.CheckEnded(ctx):
			return nil
		}
	}
}

// explain returns a LostError if the link is lost, else err.
func (h *Host) explain(err error) error {
	if why := h.link.lostCause(); why != nil && !errors.Is(why, sandbox.ErrClosed) {
		if errors.Is(why, sandbox.ErrLost) {
			return why
		}
		return h.lostError(why, "the connection to the box broke", sandbox.LostConnection)
	}
	return err
}

// Start implements shellbox.Host. Errors about the directory and the program are *fs.PathError.
func (h *Host) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	what := &wire.Start{Dir: []byte(p.Dir), User: p.User, ReplaceEnv: p.ReplaceEnv,
		Joined: p.Joined, Spool: p.Spool}
	for _, arg := range p.Args {
		what.Args = append(what.Args, []byte(arg))
	}
	for _, kv := range p.Env {
		what.Env = append(what.Env, []byte(kv))
	}
	if p.Terminal != nil {
		what.Rows, what.Cols, what.Commands = p.Terminal.Rows, p.Terminal.Cols, p.Terminal.Commands
	}
	if what.Commands {
		what.First = []byte(hostapi.FirstOf(ctx))
	}
	what.Note = []byte(hostapi.NoteOf(ctx))
	name := hostapi.NameOf(ctx)
	what.Name, what.New = name.Text, name.New
	r, err := h.link.start(ctx, what)
	if err != nil {
		return nil, h.explain(err)
	}
	return r, nil
}

// Kept implements hostapi.Keeper. It attaches to each program that boxd keeps.
func (h *Host) Kept(ctx context.Context) ([]hostapi.Kept, error) {
	programs, err := ask[[]wire.Program](ctx, h, wire.ListRequest, nil)
	if err != nil {
		return nil, err
	}
	var kept []hostapi.Kept
	list := bounded.List{What: "what boxd keeps", Max: keptMax, Cost: keptCost}
	for _, p := range programs {
		r, err := h.link.attach(ctx, p)
		if err != nil {
			return nil, h.explain(err)
		}
		if err := list.Add(len(r.storedNote())); err != nil {
			return nil, err
		}
		kept = append(kept, hostapi.Kept{Process: r, Ended: p.Ended, Note: r.storedNote(),
			Rows: p.Rows, Cols: p.Cols, Backlog: r.backlog, Skipped: r.oldest})
	}
	return kept, nil
}

// keptMax bounds the memory for the programs that boxd has kept, with their notes. keptCost is what
// one takes for its channel.
const (
	keptMax  = 16 << 20
	keptCost = 16 << 10
)

// Detach implements hostapi.Keeper. It fails unless Config.Keep or Config.Joins is set.
func (h *Host) Detach() error {
	if !h.Keep && !h.Joins {
		return errors.New("the box would end by itself: make it with Keep")
	}
	h.Abandon()
	return nil
}

// Abandon makes Close leave everything running, whether or not Config.Keep is set.
func (h *Host) Abandon() {
	h.link.mu.Lock()
	defer h.link.mu.Unlock()
	h.link.detached = true
}

// Abandoned reports whether Close leaves everything running.
func (h *Host) Abandoned() bool {
	h.link.mu.Lock()
	defer h.link.mu.Unlock()
	return h.link.detached
}

// Owns reports whether the boxd still belongs to this Host. If the connection does not tell, Owns
// tries to make one. If there is no answer before ctx ends, it reports true.
func (h *Host) Owns(ctx context.Context) bool {
	if h.Joins || h.Abandoned() {
		return false
	}
	adopts := func() bool {
		// It waits longer for boxd than for a connection, which may be gone.
		_, err := h.adopt(context.WithoutCancel(ctx))
		return err == nil
	}
	if h.replaced.Load() {
		return adopts()
	}
	h.link.mu.Lock()
	conn := h.link.current
	h.link.mu.Unlock()
	if conn != nil {
		select {
		case <-conn.Ping():
			return true
		case <-conn.Gone():
		case <-ctx.Done():
			return true
		}
	}
	conn, err := h.openConn(ctx, false)
	if err == nil {
		conn.Close()
	}
	if errors.Is(err, errOtherBoxd) {
		return adopts()
	}
	return !errors.Is(err, errRefused)
}

// Dial implements shellbox.Host. If the connection to the box is cut, reads and writes of the
// returned connection fail with sandbox.ErrCut.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	for {
		c, err := h.link.connection(ctx)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: h.explain(err)}
		}
		conn, err := c.Dial(ctx, network, address, func(err error) error {
			return err
		}, func() error { return sandbox.ErrCut })
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil || cutOr(ctx, c, err) != errCut {
			return nil, err
		}
	}
}

// Close ends the connection, and returns when nothing that ran on it is left. It does not end boxd,
// which ends by itself without an owner unless Config.Keep is set. Closing again waits, and does
// nothing else.
func (h *Host) Close() error {
	h.closing.Do(func() {
		if h.Joins {
			h.Abandon()
			h.leave()
		}
		h.link.close()
		close(h.down)
	})
	<-h.down
	return nil
}

// endReach bounds the time until boxd answers End, and endKill the time until it has ended its
// programs.
const (
	endReach = 5 * time.Second
	endKill  = 10 * time.Second
)

// End tells boxd to end all that runs in the box, and itself. It works on a machine only, not in a
// container, where boxd is the first process. It returns when boxd has gone. If the box belongs to
// another program, End leaves it alone and returns nil.
func (h *Host) End() error {
	ctx, cancel := context.WithTimeout(context.Background(), endReach)
	defer cancel()
	h.link.mu.Lock()
	conn := h.link.current
	h.link.mu.Unlock()
	if conn == nil || conn.CheckEnded(ctx) {
		var err error
		if conn, err = h.openConn(ctx, false); errors.Is(err, errRefused) {
			return nil
		} else if err != nil {
			return err
		}
		defer conn.Close()
	}
	h.link.Stop() // the connection must not be made again
	ending, cancel := context.WithTimeout(context.Background(), endKill)
	defer cancel()
	if _, err := conn.Request(ending, wire.EndRequest, nil); err != nil &&
		!conn.CheckEnded(ending) {
		return err
	}
	select {
	case <-conn.Gone():
		return nil
	case <-ending.Done():
		return ctxerr.Of(ending)
	}
}
