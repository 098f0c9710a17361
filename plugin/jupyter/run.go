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
	silent    bool
}

// Stream makes Run call f with the cell's output as it comes. The calls do not overlap, and the
// last one returns before Run does. Up to 5 MiB of output wait for a slow f; more is left out. f
// may cancel the ctx of Run. f must not call Interrupt, which waits for the cell's end, but may do
// so in a goroutine. If f panics, the cell is interrupted, and Run returns an error. If f has not
// returned two seconds after ctx has ended, Run does not wait for it, and the error is
// exec.ErrWaitDelay too.
func Stream(f func(Event)) RunOption { return func(o *runOptions) { o.stream = f } }

// An InputFunc answers Python's input(), and getpass() if secret is set. ctx ends with the ctx of
// Run, and when the kernel dies. If the InputFunc fails or panics, the cell is interrupted, and Run
// returns that error. If it has not returned two seconds after its ctx has ended, Run does not wait
// for it, and the error is exec.ErrWaitDelay too.
type InputFunc func(ctx context.Context, prompt string, secret bool) (string, error)

// Input makes f answer the cell's questions. All output before a question has gone to Stream's
// function when f is called. Default: input() raises an error.
func Input(f InputFunc) RunOption { return func(o *runOptions) { o.input = f } }

// MaxOutput sets how many bytes of Stdout, and of Stderr, the Result keeps, half of them from the
// head and half from the tail. Default, also for n <= 0: sandbox.DefaultMaxOutput, 1 MiB. Stream
// gets everything.
func MaxOutput(n int) RunOption { return func(o *runOptions) { o.maxOutput = n } }

// Silent makes Run run a cell that is not one of the user's, such as a setting. The cell has no
// number, the kernel keeps it in no history, and the value of its last expression is not shown.
func Silent() RunOption { return func(o *runOptions) { o.silent = true } }

// Run runs a cell and waits for its end. An exception of the cell is not an error of Run: see
// Result.Error. Runs of one Client wait for each other. The kernel also runs cells of other
// clients, one at a time.
//
// When ctx ends, Run interrupts the cell, and returns the Result so far and ctx's error. The kernel
// keeps its state. If the cell goes on after ten interrupts, one a second, the error is ErrStuck
// too. If the cell has not begun, because the kernel runs another one, the error is ErrQueued too,
// and the cell is interrupted when its turn comes.
//
// If the kernel has died, the error is a *DeadError, until Restart. So it is if the cell ends the
// kernel by exit or quit; Run then returns when the kernel has ended. Other errors, such as
// sandbox.ErrCut, say that the connection has ended; the next Run makes a new one. If the cell was
// sent, there is a Result beside the error.
func (c *Client) Run(ctx context.Context, code string, opts ...RunOption) (*Result, error) {
	o := runOptions{}
	for _, opt := range opts {
		opt(&o)
	}
	if o.maxOutput <= 0 {
		o.maxOutput = sandbox.DefaultMaxOutput
	}
	var result *Result
	err := c.callInTurn(ctx, func(ctx context.Context, conn *connection) (err error) {
		result, err = c.runCell(ctx, conn, code, o)
		return err
	})
	if err != nil {
		err = fmt.Errorf("run a cell in kernel %s: %w", c.config.Kernel, err)
	}
	return result, err
}

// callInTurn is call for one caller at a time.
func (c *Client) callInTurn(ctx context.Context, f func(context.Context, *connection) error) error {
	ctx, done, err := c.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := waitTurn(ctx, c.runTurn); err != nil {
		return err
	}
	defer func() { <-c.runTurn }()
	return c.withConnection(ctx, f)
}

func (c *Client) runCell(ctx context.Context, conn *connection, code string,
	o runOptions) (*Result, error) {
	began := time.Now()
	r, err := conn.send(ctx, shell, "execute_request", map[string]any{
		"code": code, "silent": o.silent, "store_history": !o.silent,
		"user_expressions": struct{}{}, "allow_stdin": o.input != nil,
		"stop_on_error": false, // true would abort other clients' cells in the queue
	})
	cell := &cell{
		conn: conn, request: r, id: r.ids[0], input: o.input, probes: map[string]bool{},
		silent: o.silent, began: make(chan struct{}), done: make(chan struct{}),
		stdout: headtail.Buffer{Max: o.maxOutput}, stderr: headtail.Buffer{Max: o.maxOutput},
	}
	if err != nil {
		conn.forget(r)
		return nil, err
	}
	if o.stream != nil {
		cell.stream = func(e Event) error {
			return callback(ctx, "Stream's function", func() error {
				o.stream(e)
				return nil
			})
		}
	}
	c.mu.Lock()
	c.running = cell
	c.mu.Unlock()
	err = cell.wait(ctx)
	if cell.streamErr != nil && !errors.Is(err, cell.streamErr) {
		err = errors.Join(err, cell.streamErr)
	}
	c.mu.Lock()
	c.running = nil
	c.mu.Unlock()
	close(cell.done)
	cell.interrupting.Wait() // an interrupt under way would hit the next cell
	if !r.abandoned {
		conn.forget(r)
	}
	result := cell.finishResult()
	if err == nil && cell.exiting {
		err = c.waitForExit(ctx, conn)
	}
	result.Duration = time.Since(began)
	return result, err
}

// A cell is one call of Run.
type cell struct {
	conn    *connection
	request *request
	id      string
	stream  func(Event) error // nil if there is none
	input   InputFunc         // nil if there is none
	silent  bool
	began   chan struct{} // closed when the kernel runs the cell
	done    chan struct{} // closed when Run does not wait for the cell any longer

	interrupting sync.WaitGroup // calls of Interrupt

	// replied is set by the kernel's reply, idle by the end of the output. With both, the cell has
	// ended. With one, the other is due.
	replied, idle  bool
	probes         map[string]bool // ids of the requests that probe has sent
	unacknowledged int             // interrupts that the kernel has not acknowledged
	question       *message        // a question that is not answered: see deferQuestion
	questionProbe  string          // the id of the request that was sent for question
	stopping       bool            // the cell is being interrupted: questions are not answered
	exiting        bool            // the cell has told the kernel to exit
	streamErr      error           // the error of stream, which is not called again

	result         Result
	stdout, stderr headtail.Buffer
	outputSize     int64 // bytes in result.Outputs
	clearPending   bool  // the next output clears those before it
}

// A cell is interrupted interruptTries times at most, interruptPause apart.
const (
	interruptTries = 10
	interruptPause = time.Second
)

// wait waits for the cell's end.
func (c *cell) wait(ctx context.Context) error {
	for !c.finished() {
		late := time.NewTimer(probePause(c.replied || c.idle || c.question != nil))
		m, err := c.conn.nextMessage(ctx, c.request, late.C)
		late.Stop()
		switch {
		case err != nil && ctx.Err() != nil:
			return c.interruptToEnd(ctxerr.Of(ctx))
		case err != nil:
			return err
		case m != nil:
			err := c.handle(ctx, m)
			if err == nil {
				err = c.streamErr
			}
			if err != nil {
				return c.interruptToEnd(err)
			}
		case c.question != nil: // an old kernel answers on control only after the cell
			if err := c.answerQuestion(ctx); err != nil {
				return c.interruptToEnd(err)
			}
		case c.replied || c.idle:
			if err := c.probe(); err != nil {
				return err
			}
		}
	}
	return nil
}

// finished reports whether the cell has ended and all its messages have arrived.
func (c *cell) finished() bool { return c.replied && c.idle && c.unacknowledged == 0 }

// probePause returns how long to wait for a message before a probe. A message is due if only the
// reply, or only the end of the output, has arrived: the other follows within milliseconds, unless
// ZeroMQ has dropped the output or an interrupt the reply (see handle).
func probePause(due bool) time.Duration {
	if due {
		return time.Second
	}
	return time.Hour
}

// probe sends a request that the kernel answers after the cell's reply and output.
func (c *cell) probe() error {
	id, err := c.conn.sendFollowUp(c.request, shell, "kernel_info_request", struct{}{})
	c.probes[id] = true
	return err
}

// interruptToEnd interrupts the cell until it has ended. It returns why, joined with any other
// error.
func (c *cell) interruptToEnd(why error) error {
	if errors.Is(why, sandbox.ErrClosed) {
		return why
	}
	c.stopping = true
	background := context.Background()    // the interrupting goes on after the end of ctx
	due := time.Now().Add(interruptPause) // the next step
	for tries := 0; !c.finished(); {
		if now := time.Now(); now.After(due) || tries == 0 && c.hasBegun() {
			step := c.sendInterrupt
			switch {
			case c.replied || c.idle:
				step = c.probe
			case tries == interruptTries:
				c.conn.abandon(c.request)
				return errors.Join(why, ErrStuck)
			case !c.hasBegun():
				c.conn.abandon(c.request)
				return errors.Join(why, ErrQueued)
			}
			if err := step(); err != nil {
				return errors.Join(why, err)
			}
			tries, due = tries+1, now.Add(interruptPause)
		}
		pause := time.NewTimer(time.Until(due))
		m, err := c.conn.nextMessage(background, c.request, pause.C)
		pause.Stop()
		if err == nil && m != nil {
			err = c.handle(background, m)
		}
		if err != nil {
			return errors.Join(why, err)
		}
	}
	return why
}

// sendInterrupt interrupts the cell. The cell is not finished until the kernel has acknowledged
// that, because the interrupt would hit the next cell otherwise.
func (c *cell) sendInterrupt() error {
	_, err := c.conn.sendFollowUp(c.request, control, "interrupt_request", struct{}{})
	c.unacknowledged++
	return err
}

// interruptForOthers interrupts the cell until it has ended. It is for goroutines other than Run's.
func (c *cell) interruptForOthers(ctx context.Context) error {
	again := time.NewTicker(interruptPause)
	defer again.Stop()
	began, tries := c.began, 0
	for {
		select {
		case <-began:
			began = nil
			again.Reset(interruptPause)
		case <-again.C:
			if began != nil {
				continue
			}
		case <-c.done:
			return nil
		case <-c.conn.gone:
			return c.conn.goneErr()
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
		if tries++; tries > interruptTries {
			return ErrStuck
		}
		if _, err := c.conn.roundTrip(ctx, control, "interrupt_request", struct{}{}); err != nil {
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
