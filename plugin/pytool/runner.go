package pytool

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
)

// A Config has the settings of a Runner.
type Config struct {
	// New makes a box for the tools that have these Needs. It is required. ctx ends when no call
	// waits for the box any longer. The Runner installs Plugin in the box, and closes it. New may
	// be called from several goroutines.
	New func(ctx context.Context, n Needs) (sandbox.Sandbox, error)
}

// A Runner calls tools in a box that it makes itself. NewRunner makes one. Its methods may be
// called from several goroutines.
//
// A Runner keeps the box as long as the tools' Needs (image, requirements, environment) stay the
// same. For other Needs it makes a new box, and closes the old one when the calls in it have ended.
// It also replaces a box that is lost. Files and processes that a call leaves in the box are there
// for the next call. A program whose tools have different Needs uses a Runner for each.
type Runner struct {
	config Config

	mu      sync.Mutex
	current *sharedBox          // for the next call; nil if one has to be made
	all     map[*sharedBox]bool // all that are not closed
	work    sync.WaitGroup      // goroutines that make or close a box
	closed  bool
	err     error // of closing boxes
}

// NewRunner returns a Runner. It makes no box before the first Call.
func NewRunner(c Config) (*Runner, error) {
	if c.New == nil {
		return nil, errors.New("pytool: Config.New: it is nil: set it to a function that makes " +
			"a box")
	}
	return &Runner{config: c, all: map[*sharedBox]bool{}}, nil
}

// A sharedBox is a box that calls share.
type sharedBox struct {
	needs  string             // a hash of its Needs
	cancel context.CancelFunc // of its making
	made   chan struct{}      // closed when box or err is there
	box    sandbox.Sandbox
	err    error

	// Under Runner.mu:
	users   int
	retired bool // no longer current
	closing bool
}

// Call calls the function in the Runner's box: see Tool.Call. Calls that arrive while the box is
// made share it. If the box is lost during a call, the error is sandbox.ErrLost; a call whose
// function had not started is tried once more, in a new box.
func (r *Runner) Call(ctx context.Context, t Tool, c Call) (*Result, error) {
	if _, err := t.request(c); err != nil {
		return nil, fmt.Errorf("call a Python function: %w", err)
	}
	res, err := r.try(ctx, &t, c)
	if _, unstarted := err.(unstartedError); unstarted && gone(err) {
		res, err = r.try(ctx, &t, c)
	}
	return res, err
}

var errRunnerClosed = fmt.Errorf("call a Python function: the Runner is closed: %w",
	sandbox.ErrClosed)

// gone reports whether an error says that the box is closed or lost.
func gone(err error) bool {
	return errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed)
}

func (r *Runner) try(ctx context.Context, t *Tool, c Call) (*Result, error) {
	b, err := r.acquire(ctx, t.Needs)
	if err != nil {
		return nil, err
	}
	res, err := t.Call(ctx, b.box, c)
	r.release(b, gone(err))
	return res, err
}

// acquire returns the box for n, and waits until it is made.
func (r *Runner) acquire(ctx context.Context, n Needs) (*sharedBox, error) {
	needs := hash([]string{n.Image}, n.normalised(), n.PipArgs, environ.Merge(n.Env))
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

// startMakingLocked begins to make a box. ctx, the first caller's, gives its values only: its end
// does not end the making, for which other callers may wait too.
func (r *Runner) startMakingLocked(ctx context.Context, needs string, n Needs) *sharedBox {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &sharedBox{needs: needs, cancel: cancel, made: make(chan struct{})}
	r.all[b] = true
	r.work.Go(func() {
		defer cancel()
		defer close(b.made)
		box, err := r.config.New(ctx, n)
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

// release ends a call's use of a box. Later calls do not use a box that is useless.
func (r *Runner) release(b *sharedBox, useless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.users--
	unmade := false
	select {
	case <-b.made:
	default:
		unmade = b.users == 0 // and nobody waits for it
	}
	if useless || unmade {
		r.retireLocked(b)
	} else if b.users == 0 && b.retired {
		r.closeLocked(b)
	}
}

// retireLocked keeps later calls from using b.
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
			if err = b.box.Close(); gone(err) {
				err = nil
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.all, b)
		r.err = errors.Join(r.err, err)
	})
}

// Close closes all boxes, and returns when they are closed. Calls under way and later calls return
// sandbox.ErrClosed. The error joins the errors of closing boxes, also of those that the Runner
// closed earlier. Close may be called again; it returns the same error.
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
