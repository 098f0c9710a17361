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

// A Runner calls tools in a box that it makes itself. It keeps the box as long as the tools' Config
// (image, requirements, environment) stays the same. For another Config it makes a new box, and
// closes the old one when the calls in it have ended; a box that is lost it replaces, too. Files
// and processes that a call leaves in the box are there for the next. A program whose tools differ
// in their Config needs a Runner for each Config.
type Runner struct {
	// New makes a box, which the Runner closes. ctx ends when no call waits for the box any more.
	// The Runner installs Plugin.
	New func(ctx context.Context, c Config) (sandbox.Sandbox, error)

	mu      sync.Mutex
	current *kept          // for the next call; nil if one has to be made
	all     map[*kept]bool // all that are not closed
	closing sync.WaitGroup // goroutines that make or close a box
	closed  bool
	err     error // of closing boxes
}

// A kept is a box that calls share.
type kept struct {
	config string
	cancel context.CancelFunc // of its making
	made   chan struct{}      // closed when box or err is there
	box    sandbox.Sandbox
	err    error

	// Under Runner.mu:
	users   int
	retired bool // no longer current
	ended   bool // being closed
}

// Call calls the function in the Runner's box: see Tool.Call. Calls that arrive while the box is
// made share it. If the box is lost during a call, the error is sandbox.ErrLost; a call whose
// function had not started is tried once more, in a new box.
func (r *Runner) Call(ctx context.Context, t Tool, c Call) (*Result, error) {
	if _, err := t.request(c); err != nil {
		return nil, fmt.Errorf("call a Python function: %w", err)
	}
	if r.New == nil {
		return nil, errors.New("call a Python function: Runner.New is nil")
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
	k, err := r.acquire(ctx, t.Config)
	if err != nil {
		return nil, err
	}
	res, err := t.Call(ctx, k.box, c)
	r.release(k, gone(err))
	return res, err
}

// acquire returns the box for c, and waits while it is made.
func (r *Runner) acquire(ctx context.Context, c Config) (*kept, error) {
	config := hash([]string{c.Image}, c.normalised(), c.PipArgs, environ.Merge(c.Env))
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errRunnerClosed
	}
	if r.current == nil || r.current.config != config {
		if r.current != nil {
			r.retire(r.current)
		}
		r.current = r.start(ctx, config, c)
	}
	k := r.current
	k.users++
	r.mu.Unlock()

	select {
	case <-k.made:
		if k.err != nil {
			r.release(k, true)
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.closed {
				return nil, errRunnerClosed
			}
			return nil, fmt.Errorf("make a box for Python: %w", k.err)
		}
		return k, nil
	case <-ctx.Done():
		r.release(k, false)
		return nil, fmt.Errorf("make a box for Python: %w", ctxerr.Of(ctx))
	}
}

// start begins to make a box. The first caller's ctx gives its values; its end does not end the
// making, for which others may wait too.
func (r *Runner) start(ctx context.Context, config string, c Config) *kept {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &kept{config: config, cancel: cancel, made: make(chan struct{})}
	if r.all == nil {
		r.all = map[*kept]bool{}
	}
	r.all[k] = true
	r.closing.Go(func() {
		defer cancel()
		defer close(k.made)
		box, err := r.New(ctx, c)
		if err != nil {
			k.err = err
			return
		}
		if err := plugin.Install(ctx, box, Plugin()); err != nil {
			k.err = errors.Join(err, box.Close())
			return
		}
		k.box = box
	})
	return k
}

// release ends a call's use of a box. A useless box is not used for later calls.
func (r *Runner) release(k *kept, useless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.users--
	unmade := false
	select {
	case <-k.made:
	default:
		unmade = k.users == 0 // and nobody waits for it
	}
	if useless || unmade {
		r.retire(k)
	} else if k.users == 0 && k.retired {
		r.end(k)
	}
}

// retire keeps later calls from using k. r.mu is held.
func (r *Runner) retire(k *kept) {
	k.retired = true
	if r.current == k {
		r.current = nil
	}
	if k.users == 0 {
		r.end(k)
	}
}

// end closes k in the background. r.mu is held.
func (r *Runner) end(k *kept) {
	if k.ended {
		return
	}
	k.ended = true
	k.cancel()
	r.closing.Go(func() {
		<-k.made
		var err error
		if k.box != nil {
			if err = k.box.Close(); gone(err) {
				err = nil
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.all, k)
		r.err = errors.Join(r.err, err)
	})
}

// Close closes all boxes; calls under way return sandbox.ErrClosed. Its error joins those of
// closing boxes, earlier ones too.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed, r.current = true, nil
	for k := range r.all {
		k.retired = true
		r.end(k)
	}
	r.mu.Unlock()
	r.closing.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
