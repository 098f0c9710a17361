package pytool

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
)

// A Config has the settings of a Runner. One of Place and New must be set.
type Config struct {
	// Place makes the boxes, of Spec. A tool's Needs.Image, if it is set, replaces Spec.Image. The
	// Runner installs Plugin in the box, and closes it.
	Place sandbox.Place
	Spec  sandbox.Spec
	// New makes a box instead of Place, for the tools that have these Needs. ctx ends when no call
	// waits for the box, and New must then return: Close waits for it. The Runner may call New from
	// several goroutines at a time. If New panics, the calls that wait for the box return an error.
	New func(ctx context.Context, n Needs) (sandbox.Sandbox, error)
}

// newBox makes a box in Place.
func (c Config) newBox(ctx context.Context, n Needs) (sandbox.Sandbox, error) {
	s := c.Spec
	if n.Image != "" {
		s.Image = n.Image
	}
	return c.Place.New(ctx, s)
}

// A Runner calls tools in a box that it makes. NewRunner makes a Runner. Its methods may be called
// from several goroutines.
//
// A Runner keeps the box as long as the Needs of the tools (image, requirements, environment) stay
// the same. For other Needs it makes a new box, and closes the old one when the calls in it have
// ended. It also replaces a box that is lost. Files and processes that a call leaves in the box are
// there for the next call. A program whose tools have different Needs uses a Runner for each.
type Runner struct {
	config Config
	source string // "Config.Place" or "Config.New": what makes the boxes

	mu      sync.Mutex
	current *sharedBox          // the box for the next call; nil if there is none
	all     map[*sharedBox]bool // the boxes that are not closed
	work    sync.WaitGroup      // goroutines that make or close a box
	closed  bool
	err     error // the errors of closing boxes
}

// NewRunner returns a Runner. It makes no box before the first Call.
func NewRunner(c Config) (*Runner, error) {
	source := "Config.New"
	switch {
	case c.New == nil && c.Place == nil:
		return nil, errors.New("pytool: Config.Place: it is nil: give a place that makes boxes, " +
			"such as sshbox.Place{}")
	case c.New != nil && c.Place != nil:
		return nil, errors.New("pytool: Config.New: Place is set, too: leave out one of the two")
	case c.New == nil:
		if err := sandbox.CheckSpec(c.Place, c.Spec); err != nil {
			return nil, fmt.Errorf("pytool: Config.Spec: %w", err)
		}
		c.New, source = c.newBox, "Config.Place"
	}
	return &Runner{config: c, source: source, all: map[*sharedBox]bool{}}, nil
}

// A sharedBox is a box that calls share.
type sharedBox struct {
	needs  string             // a hash of its Needs
	cancel context.CancelFunc // ends the making
	made   chan struct{}      // closed when box or err is set
	box    sandbox.Sandbox
	err    error

	// Under Runner.mu:
	users   int  // calls that use the box or wait for it
	retired bool // later calls do not use it
	closing bool
}

// Call calls the function in the Runner's box: see Tool.Call. Calls that arrive while the box is
// being made share it. If the box is lost during a call, the error is sandbox.ErrLost. If the
// function had not started, Call tries once more, in a new box.
func (r *Runner) Call(ctx context.Context, t Tool, c Call) (*Result, error) {
	if _, err := t.encodeRequest(c); err != nil {
		return nil, fmt.Errorf("call a Python function: %w", err)
	}
	res, err := r.callOnce(ctx, &t, c)
	if _, unstarted := err.(unstartedError); unstarted && boxIsGone(err) {
		res, err = r.callOnce(ctx, &t, c)
	}
	return res, err
}

var errRunnerClosed = fmt.Errorf("call a Python function: the Runner is closed: %w",
	sandbox.ErrClosed)

// boxIsGone reports whether an error says that the box is closed or lost.
func boxIsGone(err error) bool {
	return errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed)
}

func (r *Runner) callOnce(ctx context.Context, t *Tool, c Call) (*Result, error) {
	b, err := r.acquire(ctx, t.Needs)
	if err != nil {
		return nil, err
	}
	res, err := t.Call(ctx, b.box, c)
	r.release(b, boxIsGone(err))
	return res, err
}

// acquire returns the box for n, and waits until it is made.
func (r *Runner) acquire(ctx context.Context, n Needs) (*sharedBox, error) {
	needs := hash([]string{n.Image}, n.sortedRequirements(), n.PipArgs, environ.Merge(n.Env))
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errRunnerClosed
	}
	if r.current == nil || r.current.needs != needs {
		if r.current != nil {
			r.retireLocked(r.current)
		}
		r.current = r.startMakingLocked(ctx, needs, n)
	}
	b := r.current
	b.users++
	r.mu.Unlock()

	select {
	case <-b.made:
		if b.err != nil {
			r.release(b, true)
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.closed {
				return nil, errRunnerClosed
			}
			return nil, fmt.Errorf("make a box for Python: %w", b.err)
		}
		return b, nil
	case <-ctx.Done():
		r.release(b, false)
		return nil, fmt.Errorf("make a box for Python: %w", ctxerr.Of(ctx))
	}
}

// startMakingLocked starts to make a box. It uses only the values of ctx, which is the first
// caller's. The end of ctx does not end the making, because other callers may wait for the box too.
func (r *Runner) startMakingLocked(ctx context.Context, needs string, n Needs) *sharedBox {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &sharedBox{needs: needs, cancel: cancel, made: make(chan struct{})}
	r.all[b] = true
	r.work.Go(func() {
		defer cancel()
		defer close(b.made)
		var box sandbox.Sandbox
		err := guard.Call(r.source, func() (err error) {
			box, err = r.config.New(ctx, n)
			return err
		})
		if err == nil && box == nil {
			err = errors.New(r.source + " returned neither a box nor an error")
		}
		if err != nil {
			b.err = err
			return
		}
		if err := plugin.Install(ctx, box, Plugin()); err != nil {
			b.err = errors.Join(err, box.Close())
			return
		}
		b.box = box
	})
	return b
}

// release ends a call's use of a box. If useless is set, later calls do not use the box.
func (r *Runner) release(b *sharedBox, useless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.users--
	unwanted := false
	select {
	case <-b.made:
	default:
		unwanted = b.users == 0
	}
	if useless || unwanted {
		r.retireLocked(b)
	} else if b.users == 0 && b.retired {
		r.closeLocked(b)
	}
}

// retireLocked keeps later calls from using b, and closes b when no call uses it.
func (r *Runner) retireLocked(b *sharedBox) {
	b.retired = true
	if r.current == b {
		r.current = nil
	}
	if b.users == 0 {
		r.closeLocked(b)
	}
}

// closeLocked closes b in the background.
func (r *Runner) closeLocked(b *sharedBox) {
	if b.closing {
		return
	}
	b.closing = true
	b.cancel()
	r.work.Go(func() {
		<-b.made
		var err error
		if b.box != nil {
			if err = b.box.Close(); boxIsGone(err) {
				err = nil
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.all, b)
		r.err = errors.Join(r.err, err)
	})
}

// Close closes the Runner's boxes, and returns when they are closed. Calls under way and later
// calls return sandbox.ErrClosed. The error joins the errors of closing boxes, also of boxes that
// the Runner closed earlier. Close may be called again, and returns the same error.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed, r.current = true, nil
	for b := range r.all {
		b.retired = true
		r.closeLocked(b)
	}
	r.mu.Unlock()
	r.work.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
