package faulttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// A fault is a kind of fault, and what it may do to a box.
type fault struct {
	name string
	// returns when it has hit, or when it is over if it passes
	do     func(r *round, rng *rand.Rand) error
	config func(*sshbox.Config) // changes the Config of the container; may be nil

	cause    sandbox.LostCause // why the box is lost; "" if it is not
	cuts     bool              // copies and dialed connections may be cut
	kills    bool              // programs are killed, and their results say so
	exhausts bool              // the system may refuse calls
	restarts bool              // the sshd is restarted, so the round needs one of its own
	scripts  bool              // copies are made by scripts, which are killed too
}

func (f *fault) lost() bool { return f.cause != sandbox.LostUnknown }

// A place is a round's box, with what a test needs to reach it from outside.
type place struct {
	box    sandbox.Sandbox
	wire   *Wire
	dir    string                    // a directory in the box for the workers
	echo   string                    // the address, in the box, of a server that echoes
	inside func(script string) error // executes a script in the box without the library
	// the container's; on a machine a variable that the box's programs have
	id     string
	server *sshdtest.Server // of a machine
	gone   func() error     // after the box's Close: returns an error if something is left
	untold func() bool      // reports whether the engine does not know what ended the box
	blind  bool             // the host cannot see what a program waits for
}

// A round is a box that works while a fault hits it.
type round struct {
	*place
	t     *testing.T
	seed  uint64
	fault fault
	sum   *summary
	files string // a directory on this machine
	limit time.Duration

	mu     sync.Mutex
	struck time.Time // when the fault had hit; zero before
	stop   chan struct{}
}

// callLimit bounds each call, in case it hangs.
const callLimit = testenv.Limit

func (r *round) errorf(format string, args ...any) {
	wrong := fmt.Sprintf("%s, SANDSHELL_TEST_SEED=%d: %s", r.fault.name, r.seed,
		fmt.Sprintf(format, args...))
	r.t.Error(wrong)
	r.sum.add(r.fault.name, func(l *line) {
		l.wrong++
		r.sum.wrong = append(r.sum.wrong, wrong)
	})
}

func (r *round) run(build placer) {
	r.sum.add(r.fault.name, func(l *line) { l.rounds++ })
	var err error
	if r.files, err = os.MkdirTemp("", "faults-"); err != nil {
		r.errorf("%v", err)
		return
	}
	defer os.RemoveAll(r.files)
	began := time.Now()
	if r.place, err = build(r); err != nil {
		r.errorf("make the box: %v", err)
		return
	}
	making := time.Since(began)
	r.limit = allowed(making)
	defer r.wire.Close()
	rng := rand.New(rand.NewPCG(r.seed, 0))
	r.stop = make(chan struct{})
	workers, err := r.workers(rng)
	if err != nil {
		r.errorf("begin to work: %v", err)
	}
	var working sync.WaitGroup
	began = time.Now()
	for _, w := range workers {
		working.Go(func() { w.once() })
	}
	working.Wait()
	r.limit = allowed(max(making, time.Since(began)))
	for _, w := range workers {
		working.Go(w.loop)
	}
	time.Sleep(upTo(rng, 250*time.Millisecond))
	if err := r.fault.do(r, rng); err != nil {
		r.errorf("the fault: %v", err)
	}
	r.mu.Lock()
	r.struck = time.Now()
	r.mu.Unlock()
	time.Sleep(upTo(rng, 400*time.Millisecond))
	close(r.stop)
	working.Wait()
	if r.fault.lost() {
		r.isLost()
	} else {
		r.isUsable(workers)
	}
	r.closes()
}

// closes closes the box, and checks that nothing is left.
func (r *round) closes() {
	began := time.Now()
	if err := r.box.Close(); err != nil {
		r.errorf("close: %v", err)
	}
	r.took("Close", time.Since(began))
	if _, err := r.box.Execute(context.Background(), ":"); !errors.Is(err, sandbox.ErrClosed) &&
		!(r.fault.lost() && errors.Is(err, sandbox.ErrLost)) {
		r.errorf("after Close: %v", err)
	}
	r.wire.Close()
	var left error
	for end := time.Now().Add(r.limit); ; time.Sleep(20 * time.Millisecond) {
		if left = r.gone(); left == nil {
			return
		}
		if time.Now().After(end) {
			r.errorf("after Close: %v", left)
			return
		}
	}
}

// took records how long a call took.
func (r *round) took(what string, d time.Duration) {
	if d > r.limit {
		r.errorf("%s returned after %v, of %v allowed", what, d, r.limit)
	}
	r.sum.add(r.fault.name, func(l *line) {
		if d > l.slowest {
			l.slowest, l.what = d, what
		}
	})
}

// A mistake is a wrong result.
type mistake string

func (m mistake) Error() string { return string(m) }

func mistakef(format string, args ...any) error { return mistake(fmt.Sprintf(format, args...)) }

// try makes a call and checks its error. resumes says that the call goes on after a cut. try
// reports whether the call succeeded.
func (r *round) try(what string, resumes bool, call func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	ended := time.Now()
	r.mu.Lock()
	struck := r.struck
	r.mu.Unlock()
	if !struck.IsZero() {
		if struck.After(began) {
			began = struck
		}
		r.took(what, ended.Sub(began))
	}
	if err == nil {
		r.sum.add(r.fault.name, func(l *line) { l.right++ })
		return true
	}
	kind := r.kindOf(err, resumes)
	if kind == "" || ctx.Err() != nil {
		var lost sandbox.LostError
		if e := (*sandbox.LostError)(nil); errors.As(err, &e) {
			lost = *e
		}
		r.errorf("%s: %v (%T, cause %q)", what, err, err, lost.Cause)
		return false
	}
	r.sum.add(r.fault.name, func(l *line) { l.typed[kind]++ })
	return false
}

// kindOf returns a name for the error if this fault may cause it, and "" otherwise.
func (r *round) kindOf(err error, resumes bool) string {
	var wrong mistake
	var lost *sandbox.LostError
	var errno syscall.Errno
	var killed *killedError
	switch {
	case errors.As(err, &wrong):
		return ""
	case errors.As(err, &killed) && (r.fault.kills || r.fault.exhausts), r.fault.scripts &&
		errors.Is(err, syscall.EIO):
		return "killed"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, sandbox.ErrClosed),
		errors.Is(err, sandbox.ErrBusy), errors.Is(err, sandbox.ErrIdle):
		return ""
	case errors.As(err, &lost):
		if r.fault.lost() && (lost.Cause == r.fault.cause || lost.Cause == sandbox.LostUnknown &&
			r.untold()) {
			return "ErrLost"
		}
	case errors.Is(err, sandbox.ErrCut) && r.fault.cuts && !resumes:
		return "ErrCut"
	case errors.As(err, &errno) && (r.fault.exhausts || r.fault.kills &&
		(errno == syscall.ECONNREFUSED || errno == syscall.ECONNRESET)):
		return "errno"
	}
	return ""
}

// A killedError says that a program of the box was killed, according to its result.
type killedError struct{ how string }

func (k *killedError) Error() string { return k.how }

// isUsable checks that the box does all that it did before the fault.
func (r *round) isUsable(workers []*worker) {
	recover := func() {
		for _, w := range workers {
			if w.s != nil {
				w.recover()
			}
		}
	}
	if r.fault.kills { // if an idle shell was killed, the next Result says so
		recover()
	}
	r.fault.kills, r.fault.cuts, r.fault.exhausts = false, false, false // the fault is over
	recover()
	r.findsNothing()
	w := &worker{round: r, s: r.box, rng: rand.New(rand.NewPCG(r.seed, 99)), counts: -1}
	for _, work := range []work{executes, runs, copies, jobs} {
		r.try("a new "+work.name, false, func(ctx context.Context) error { return work.do(w, ctx) })
	}
}

// findsNothing checks that interrupted copies have left no temporary files.
func (r *round) findsNothing() {
	r.try("looking for what copies have left", true, func(ctx context.Context) error {
		var out bytes.Buffer
		code, err := r.box.Run(ctx, &sandbox.Cmd{Args: []string{"find", r.dir, "-name",
			"*sandshell-copy*"}, Stdout: &out})
		if err == nil && (code != 0 || out.Len() > 0) {
			err = mistakef("status %d, %s", code, out.String())
		}
		return err
	})
}

// isLost checks that every call says that the box is lost.
func (r *round) isLost() {
	lost := func(what string, call func(ctx context.Context) error) {
		r.try(what, false, func(ctx context.Context) error {
			err := call(ctx)
			if err == nil {
				return mistakef("the box is not lost")
			}
			return err
		})
	}
	lost("Execute", func(ctx context.Context) error {
		_, err := r.box.Execute(ctx, "true")
		return err
	})
	lost("Open", func(ctx context.Context) error { _, err := r.box.Open(ctx); return err })
	lost("Background", func(ctx context.Context) error {
		_, err := r.box.Background(ctx, "true")
		return err
	})
	lost("Run", func(ctx context.Context) error {
		_, err := r.box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}})
		return err
	})
	lost("CopyTo", func(ctx context.Context) error { return r.box.CopyTo(ctx, r.files, r.dir) })
	lost("CopyFrom", func(ctx context.Context) error { return r.box.CopyFrom(ctx, r.dir, r.files) })
	lost("Dial", func(ctx context.Context) error {
		_, err := r.box.Dial(ctx, "tcp", r.echo)
		return err
	})
}

// upTo returns a random duration below d.
func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d)))
}
