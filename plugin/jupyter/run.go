package jupyter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/sandbox"
)

// A RunOption is an option of Run.
type RunOption func(*runOptions)

type runOptions struct {
	stream    func(Event)
	input     InputFunc
	maxOutput int
}

// Stream calls f with the cell's output, as it comes: one call at a time, the last before Run
// returns. Up to 5 MiB wait for a slow f, and more is left out. f may cancel Run's ctx. It must not
// call Interrupt, which waits for the cell's end, except in a goroutine. If f panics, the cell is
// interrupted, and Run returns an error.
func Stream(f func(Event)) RunOption { return func(o *runOptions) { o.stream = f } }

// An InputFunc answers Python's input(), and getpass() if secret. If it returns an error or panics,
// the cell is interrupted and Run returns that error. ctx ends with Run's, and when the kernel
// dies.
type InputFunc func(ctx context.Context, prompt string, secret bool) (string, error)

// Input has f answer the cell's questions. Stream has seen all output before the question by then.
// Default: input() raises an error.
func Input(f InputFunc) RunOption { return func(o *runOptions) { o.input = f } }

// MaxOutput sets how many bytes are kept of Stdout, and of Stderr, half of them from the head and
// half from the tail. Default, for zero or less too: sandbox.DefaultMaxOutput, 1 MiB. Stream gets
// everything.
func MaxOutput(n int) RunOption { return func(o *runOptions) { o.maxOutput = n } }

// Run runs a cell and waits for its end. That it raises is data, not an error: see Result.Error.
// Several Runs of a Client wait for each other; cells of other clients are in the kernel's queue
// with it.
//
// When ctx ends, the cell is interrupted, and Run returns the Result so far, and ctx's error. The
// kernel and its state are as after a ^C. If the cell swallows ten interrupts, one a second, the
// error is ErrStuck too, and the cell goes on. If the cell is still in the kernel's queue, the
// error is ErrQueued too, and the cell is interrupted when its turn comes.
//
// If the kernel has died, the error is a *DeadError, until Restart. A cell that ends the kernel by
// exit or quit gets it too, beside its Result, once the kernel has ended. Other errors, such as
// sandbox.ErrCut, say that the connection is gone; the next Run makes a new one. Beside any error
// there is a Result if the cell was sent.
func (c *Client) Run(ctx context.Context, code string, opts ...RunOption) (*Result, error) {
	o := runOptions{}
	for _, opt := range opts {
		opt(&o)
	}
	if o.maxOutput <= 0 {
		o.maxOutput = sandbox.DefaultMaxOutput
	}
	var result *Result
	err := c.inTurn(ctx, func(ctx context.Context, conn *connection) (err error) {
		result, err = c.run(ctx, conn, code, o)
		return err
	})
	if err != nil {
		err = fmt.Errorf("run a cell in kernel %s: %w", c.config.Kernel, err)
	}
	return result, err
}

// inTurn is with, and waits until no other call of inTurn is under way.
func (c *Client) inTurn(ctx context.Context, f func(context.Context, *connection) error) error {
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := waitTurn(ctx, c.turn); err != nil {
		return err
	}
	defer func() { <-c.turn }()
	return c.withConnection(ctx, f)
}

func (c *Client) run(ctx context.Context, conn *connection, code string,
	o runOptions) (*Result, error) {
	began := time.Now()
	r, err := conn.send(shell, "execute_request", map[string]any{
		"code": code, "silent": false, "store_history": true, "user_expressions": struct{}{},
		"allow_stdin":   o.input != nil,
		"stop_on_error": false, // true would abort other clients' cells in the queue
	})
	cell := &cell{
		conn: conn, r: r, id: r.ids[0], options: o, probes: map[string]bool{},
		began: make(chan struct{}), ended: make(chan struct{}),
		stdout: headtail.Buffer{Max: o.maxOutput}, stderr: headtail.Buffer{Max: o.maxOutput},
	}
	if err != nil {
		conn.forget(r)
		return nil, err
	}
	c.mu.Lock()
	c.cell = cell
	c.mu.Unlock()
	err = cell.wait(ctx)
	c.mu.Lock()
	c.cell = nil
	c.mu.Unlock()
	close(cell.ended)
	cell.interrupting.Wait() // one that is under way would hit the next cell
	if !r.abandoned {
		conn.forget(r)
	}
	result := cell.finish()
	if err == nil && cell.exits {
		err = c.exit(ctx, conn)
	}
	result.Duration = time.Since(began)
	return result, err
}

// A cell is one call of Run.
type cell struct {
	conn    *connection
	r       *request
	id      string
	options runOptions
	began   chan struct{} // closed when it runs
	ended   chan struct{}

	interrupting sync.WaitGroup // calls of Interrupt

	// when both are set the cell has ended, and all its output has arrived; with one of them, the
	// rest is due
	replied, idle bool
	probes        map[string]bool // ids of requests behind it in the kernel's queue
	interrupts    int             // how many the kernel has not acknowledged
	question      *message        // held until the request caughtUp is answered: see hold
	caughtUp      string          // a request's id
	stopping      bool            // it is being interrupted: questions are not answered
	exits         bool            // it has told the kernel to exit
	failed        error           // Stream's function has panicked

	result         Result
	stdout, stderr headtail.Buffer
	shown          int64 // bytes in result.Outputs
	clear          bool  // before the next output
}

// How often a cell is interrupted, and how far apart.
const (
	stopTries = 10
	stopPause = time.Second
)

// wait waits for the cell's end.
func (c *cell) wait(ctx context.Context) error {
	for !c.over() {
		late := time.NewTimer(probePause(c.replied || c.idle || c.question != nil))
		m, err := c.conn.next(ctx, c.r, late.C)
		late.Stop()
		switch {
		case err != nil && ctx.Err() != nil:
			return c.stop(ctxerr.Of(ctx))
		case err != nil:
			return err
		case m != nil:
			err := c.take(ctx, m)
			if err == nil {
				err = c.failed
			}
			if err != nil {
				return c.stop(err)
			}
		case c.question != nil: // an old kernel has no thread for control
			if err := c.answer(ctx); err != nil {
				return c.stop(err)
			}
		case c.replied || c.idle:
			if err := c.probe(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cell) over() bool { return c.replied && c.idle && c.interrupts == 0 }

// probePause is how long to wait for a message before a probe, when one is due: the rest of the
// output after a reply, or the reply after the kernel was idle. It follows within milliseconds,
// unless ZeroMQ has dropped the output, or an interrupt the reply: see take.
func probePause(due bool) time.Duration {
	if due {
		return time.Second
	}
	return time.Hour
}

// probe sends a request that the kernel answers after the cell's reply and output.
func (c *cell) probe() error {
	id, err := c.conn.also(c.r, shell, "kernel_info_request", struct{}{})
	c.probes[id] = true
	return err
}

// stop interrupts the cell until it has ended. It returns why, joined with any other error.
func (c *cell) stop(why error) error {
	if errors.Is(why, sandbox.ErrClosed) {
		return why
	}
	c.stopping = true
	background := context.Background() // the caller's has ended
	due := time.Now().Add(stopPause)   // the next step
	for tries := 0; !c.over(); {
		if now := time.Now(); now.After(due) || tries == 0 && c.hasBegun() {
			step := c.interrupt
			switch {
			case c.replied || c.idle:
				step = c.probe
			case tries == stopTries:
				c.conn.abandon(c.r)
				return errors.Join(why, ErrStuck)
			case !c.hasBegun():
				c.conn.abandon(c.r)
				return errors.Join(why, ErrQueued)
			}
			if err := step(); err != nil {
				return errors.Join(why, err)
			}
			tries, due = tries+1, now.Add(stopPause)
		}
		pause := time.NewTimer(time.Until(due))
		m, err := c.conn.next(background, c.r, pause.C)
		pause.Stop()
		if err == nil && m != nil {
			err = c.take(background, m)
		}
		if err != nil {
			return errors.Join(why, err)
		}
	}
	return why
}

// interrupt interrupts the cell. The cell counts as over only when the kernel has acknowledged the
// interrupt, which might hit the next cell otherwise.
func (c *cell) interrupt() error {
	_, err := c.conn.also(c.r, control, "interrupt_request", struct{}{})
	c.interrupts++
	return err
}

// interruptFromOutside interrupts the cell, for goroutines other than Run's, and waits for its end.
func (c *cell) interruptFromOutside(ctx context.Context) error {
	again := time.NewTicker(stopPause)
	defer again.Stop()
	began, tries := c.began, 0
	for {
		select {
		case <-began:
			began = nil
			again.Reset(stopPause)
		case <-again.C:
			if began != nil {
				continue
			}
		case <-c.ended:
			return nil
		case <-c.conn.gone:
			return c.conn.why()
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
		if tries++; tries > stopTries {
			return ErrStuck
		}
		if _, err := c.conn.ask(ctx, control, "interrupt_request", struct{}{}); err != nil {
			return err
		}
	}
}

func (c *cell) hasBegun() bool {
	select {
	case <-c.began:
		return true
	default:
		return false
	}
}
