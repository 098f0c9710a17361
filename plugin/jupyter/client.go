package jupyter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A Config says which kernel a Client connects to. The zero value is usable.
type Config struct {
	// Kernel is the name of the kernel. It has up to 64 letters, digits, "-", "_" and ".", and
	// begins with a letter or a digit. Default: DefaultKernel.
	Kernel string
	// Dir is the working directory of a kernel that the Client starts. Default: the directory in
	// which the sandbox's Runs start.
	Dir string
}

// A Client runs cells in one kernel. Connect makes one.
type Client struct {
	box    sandbox.Sandbox
	config Config

	runTurn     chan struct{} // full while a Run is under way
	connectTurn chan struct{} // full while a connection is made

	calls sync.WaitGroup // calls under way

	mu      sync.Mutex
	closed  bool
	cancels map[*context.CancelCauseFunc]bool // of the calls under way
	conn    *connection
	death   error // how the kernel of conn died; nil if it lives
	running *cell // of the Run under way; nil if there is none
}

// Connect connects to a kernel in the sandbox. If the kernel does not run or has died, Connect
// starts it. If the sandbox lacks the plugin, the error is ErrNotInstalled. ctx governs the call
// only; the Client lives until Close.
func Connect(ctx context.Context, sb sandbox.Sandbox, c Config) (*Client, error) {
	if sb == nil {
		return nil, errors.New("jupyter: Connect: the sandbox is nil: make a box first")
	}
	if c.Kernel == "" {
		c.Kernel = DefaultKernel
	}
	if !validName.MatchString(c.Kernel) {
		return nil, fmt.Errorf("jupyter: Config.Kernel: %q is not a name: a name has up to 64 "+
			"letters, digits, \"-\", \"_\" and \".\", and begins with a letter or a digit",
			c.Kernel)
	}
	client := &Client{box: sb, config: c, runTurn: make(chan struct{}, 1),
		connectTurn: make(chan struct{}, 1), cancels: map[*context.CancelCauseFunc]bool{}}
	if err := client.start(ctx); err != nil {
		return nil, fmt.Errorf("jupyter: connect to kernel %s: %w", c.Kernel, err)
	}
	return client, nil
}

// start makes execute_cli start the kernel if it does not run, and connects to it.
func (c *Client) start(ctx context.Context, args ...string) error {
	if c.config.Dir != "" {
		args = append(args, "--dir", c.config.Dir)
	}
	status, err := executeCLI(ctx, c.box, c.config.Kernel, append(args, "--connect")...)
	if err != nil {
		return err
	}
	return c.connect(ctx, status)
}

// connect makes a connection to the kernel, which takes the place of the old one.
func (c *Client) connect(ctx context.Context, status *kernelStatus) error {
	if status.Connection == nil {
		return errors.New("execute_cli does not say how to connect to the kernel")
	}
	conn, err := dial(ctx, c.box, &status.kernelInfo)
	if err != nil {
		return err
	}
	c.mu.Lock()
	old, closed := c.conn, c.closed
	if !closed {
		c.conn, c.death = conn, nil
	}
	c.mu.Unlock()
	if closed {
		conn.close()
		return sandbox.ErrClosed
	}
	if old != nil {
		old.close()
	}
	return nil
}

// beginCall begins a call, for which Close waits. The context that it returns ends with ctx, and
// when Close begins. The caller must call done.
func (c *Client) beginCall(ctx context.Context) (_ context.Context, done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, sandbox.ErrClosed
	}
	if err := ctxerr.Of(ctx); err != nil {
		return nil, nil, err
	}
	ctx, end := ctxerr.WithCancel(ctx)
	c.calls.Add(1)
	c.cancels[&end] = true
	return ctx, func() {
		end(nil)
		c.mu.Lock()
		delete(c.cancels, &end)
		c.mu.Unlock()
		c.calls.Done()
	}, nil
}

// ensureConnected returns the connection. If it was cut, ensureConnected makes a new one. If the
// kernel has died, the error is its *DeadError.
func (c *Client) ensureConnected(ctx context.Context) (*connection, error) {
	if err := waitTurn(ctx, c.connectTurn); err != nil {
		return nil, err
	}
	defer func() { <-c.connectTurn }()
	c.mu.Lock()
	conn, dead := c.conn, c.death
	c.mu.Unlock()
	if dead != nil {
		return nil, dead
	}
	select {
	case <-conn.gone:
	default:
		return conn, nil
	}
	for began := time.Now(); ; {
		status, err := c.checkKernel(ctx, conn)
		if err != nil {
			return nil, err
		}
		if err = c.connect(ctx, status); err == nil {
			break
		}
		if ctx.Err() != nil || time.Since(began) > exitWait {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn, nil
}

// exitWait is how long a kernel may accept connections without answering before that is an error.
// An exiting kernel does so until it has ended.
const exitWait = 5 * time.Second

// checkKernel asks the sandbox whether the kernel of conn, which has ended, lives. If the kernel
// has died, the error is its *DeadError.
func (c *Client) checkKernel(ctx context.Context, conn *connection) (*kernelStatus, error) {
	status, err := executeCLI(ctx, c.box, c.config.Kernel, "--status")
	if err != nil {
		return nil, fmt.Errorf("%w; the sandbox does not say why: %w", conn.goneErr(), err)
	}
	dead := status.deathOf(c.config.Kernel, conn.kernel)
	if dead == nil {
		return status, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	dead.Exited = conn.exiting
	if c.conn == conn {
		c.death = dead
	}
	return nil, dead
}

// explainLoss returns the kernel's *DeadError if err says that the connection has ended because the
// kernel died. Otherwise it returns err. A kernel that is still exiting looks alive to the sandbox,
// so explainLoss also connects again, which succeeds only with a kernel that answers.
func (c *Client) explainLoss(ctx context.Context, conn *connection, err error) error {
	var gone *goneError
	if !errors.As(err, &gone) || ctx.Err() != nil {
		return err
	}
	if _, fate := c.checkKernel(ctx, conn); fate != nil {
		return fate
	}
	if _, fate := c.ensureConnected(ctx); errors.Is(fate, ErrDead) {
		return fate
	}
	return err
}

// waitForExit waits for the end of a kernel that a cell has told to exit. If a thread of a cell
// holds that up, waitForExit stops the kernel.
func (c *Client) waitForExit(ctx context.Context, conn *connection) error {
	c.mu.Lock()
	conn.exiting = true
	c.mu.Unlock()
	late := time.NewTimer(exitWait)
	defer late.Stop()
	select {
	case <-conn.gone:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-late.C:
		if _, err := executeCLI(ctx, c.box, c.config.Kernel, "--stop"); err != nil {
			return err
		}
	}
	_, err := c.checkKernel(ctx, conn)
	return err
}

// waitTurn waits for the turn and takes it. The caller ends its turn by receiving from the channel.
func waitTurn(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}

// Interrupt interrupts the cell that this Client runs, as soon as it has begun, and returns when it
// has ended. Python raises KeyboardInterrupt. An interrupt may get lost, for instance in a
// finalizer, so Interrupt repeats it each second. After ten interrupts the error is ErrStuck. If
// this Client runs no cell, Interrupt interrupts the kernel's cell once, which may be another
// client's.
func (c *Client) Interrupt(ctx context.Context) error {
	err := c.call(ctx, func(ctx context.Context, conn *connection) error {
		c.mu.Lock()
		running := c.running
		if running != nil {
			running.interrupting.Add(1)
		}
		c.mu.Unlock()
		if running != nil {
			defer running.interrupting.Done()
			return running.interruptForOthers(ctx)
		}
		_, err := conn.roundTrip(ctx, control, "interrupt_request", struct{}{})
		return err
	})
	if err != nil {
		return fmt.Errorf("interrupt kernel %s: %w", c.config.Kernel, err)
	}
	return nil
}

// call calls f with the connection. Close waits for it.
func (c *Client) call(ctx context.Context, f func(context.Context, *connection) error) error {
	ctx, done, err := c.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	return c.withConnection(ctx, f)
}

// withConnection calls f with the connection, and explains its error.
func (c *Client) withConnection(ctx context.Context,
	f func(context.Context, *connection) error) error {
	conn, err := c.ensureConnected(ctx)
	if err != nil {
		return err
	}
	if err := f(ctx, conn); err != nil {
		return c.explainLoss(ctx, conn, err)
	}
	return nil
}

// roundTrip sends a request and returns the reply.
func (c *connection) roundTrip(ctx context.Context, channel, kind string,
	content any) (*message, error) {
	r, err := c.send(ctx, channel, kind, content)
	defer c.forget(r)
	if err != nil {
		return nil, err
	}
	for {
		m, err := c.nextMessage(ctx, r, nil)
		if err != nil || m.channel == channel {
			return m, err
		}
	}
}

// Restart ends the kernel, if it lives, with all processes of its cells, and starts a fresh one. A
// Run under way, of any Client, gets a *DeadError.
func (c *Client) Restart(ctx context.Context) error {
	ctx, done, err := c.beginCall(ctx)
	if err == nil {
		defer done()
		err = waitTurn(ctx, c.connectTurn)
	}
	if err == nil {
		defer func() { <-c.connectTurn }()
		err = c.start(ctx, "--restart")
	}
	if err != nil {
		return fmt.Errorf("restart kernel %s: %w", c.config.Kernel, err)
	}
	return nil
}

// Stop ends the kernel with all processes of its cells. Restart, or a new Client, starts it again.
func (c *Client) Stop(ctx context.Context) error {
	ctx, done, err := c.beginCall(ctx)
	if err == nil {
		defer done()
		_, err = executeCLI(ctx, c.box, c.config.Kernel, "--stop")
	}
	if err != nil {
		return fmt.Errorf("stop kernel %s: %w", c.config.Kernel, err)
	}
	return nil
}

// Close ends the connection. Calls under way and later calls return sandbox.ErrClosed. The kernel
// and a cell that runs in it go on, until Stop or the end of the sandbox. Close may be called
// again.
func (c *Client) Close() error {
	c.mu.Lock()
	closed, conn := c.closed, c.conn
	c.closed = true
	for end := range c.cancels {
		(*end)(sandbox.ErrClosed)
	}
	c.mu.Unlock()
	if !closed {
		conn.close()
	}
	c.calls.Wait()
	return nil
}
