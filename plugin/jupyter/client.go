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
	// Kernel is the name of the kernel: up to 64 letters, digits, "-", "_" and ".", of which the
	// first is a letter or a digit. Default: DefaultKernel.
	Kernel string
	// Dir is the working directory of the kernel if Connect starts it. Default: the sandbox's.
	Dir string
}

// A Client runs cells in one kernel. Connect makes one.
type Client struct {
	box    sandbox.Sandbox
	config Config

	turn       chan struct{} // full while a cell runs
	connecting chan struct{} // full while conn is made

	calls sync.WaitGroup

	mu     sync.Mutex
	closed bool
	ends   map[*context.CancelCauseFunc]bool // they end the calls under way
	conn   *connection
	dead   error // the death of conn's kernel, if it has died
	cell   *cell // the one that runs
}

// Connect connects to a kernel in the sandbox. If the kernel does not run or has died, Connect
// starts it. If the sandbox lacks the plugin, the error is ErrNotInstalled. ctx governs the call
// only; the Client lives until Close.
func Connect(ctx context.Context, sb sandbox.Sandbox, c Config) (*Client, error) {
	if c.Kernel == "" {
		c.Kernel = DefaultKernel
	}
	if !validName.MatchString(c.Kernel) {
		return nil, fmt.Errorf("jupyter: Config.Kernel: %q is not a name: a name has up to 64 "+
			"letters, digits, \"-\", \"_\" and \".\", and begins with a letter or a digit",
			c.Kernel)
	}
	client := &Client{box: sb, config: c, turn: make(chan struct{}, 1),
		connecting: make(chan struct{}, 1), ends: map[*context.CancelCauseFunc]bool{}}
	if err := client.start(ctx); err != nil {
		return nil, fmt.Errorf("jupyter: connect to kernel %s: %w", c.Kernel, err)
	}
	return client, nil
}

// start has execute_cli start the kernel if it does not run, and connects to it.
func (c *Client) start(ctx context.Context, args ...string) error {
	if c.config.Dir != "" {
		args = append(args, "--dir", c.config.Dir)
	}
	status, err := tool(ctx, c.box, c.config.Kernel, append(args, "--connect")...)
	if err != nil {
		return err
	}
	return c.connect(ctx, status)
}

func (c *Client) connect(ctx context.Context, status *kernelStatus) error {
	if status.Connection == nil {
		return errors.New("execute_cli tells no connection")
	}
	conn, err := dial(ctx, c.box, &status.running)
	if err != nil {
		return err
	}
	c.mu.Lock()
	old, closed := c.conn, c.closed
	if !closed {
		c.conn, c.dead = conn, nil
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

// begin begins a call, for which Close waits. The context that it returns ends with ctx, or when
// Close begins. The caller has to call done.
func (c *Client) begin(ctx context.Context) (_ context.Context, done func(), err error) {
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
	c.ends[&end] = true
	return ctx, func() {
		end(nil)
		c.mu.Lock()
		delete(c.ends, &end)
		c.mu.Unlock()
		c.calls.Done()
	}, nil
}

// connected returns the connection. One that was cut is made anew; if the kernel has died, the
// error says how.
func (c *Client) connected(ctx context.Context) (*connection, error) {
	if err := waitTurn(ctx, c.connecting); err != nil {
		return nil, err
	}
	defer func() { <-c.connecting }()
	c.mu.Lock()
	conn, dead := c.conn, c.dead
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
		status, err := c.fate(ctx, conn)
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

// exitWait is how long a kernel may listen to newcomers and answer none, before that is called an
// error. One that exits does so, until it has ended.
const exitWait = 5 * time.Second

// fate asks the sandbox about the kernel of a connection that has ended. If the kernel has died,
// the error is its *DeadError.
func (c *Client) fate(ctx context.Context, conn *connection) (*kernelStatus, error) {
	status, err := tool(ctx, c.box, c.config.Kernel, "--status")
	if err != nil {
		return nil, fmt.Errorf("%w; nor can the sandbox be asked: %w", conn.why(), err)
	}
	dead := status.died(c.config.Kernel, conn.kernel)
	if dead == nil {
		return status, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	dead.Exited = conn.exits
	if c.conn == conn {
		c.dead = dead
	}
	return nil, dead
}

// explain returns the kernel's *DeadError in place of err, if its death has ended the connection. A
// kernel that still exits would pass for a living one: so the connection is made anew, which only a
// kernel that answers lets happen.
func (c *Client) explain(ctx context.Context, conn *connection, err error) error {
	var gone *goneError
	if !errors.As(err, &gone) || ctx.Err() != nil {
		return err
	}
	if _, fate := c.fate(ctx, conn); fate != nil {
		return fate
	}
	if _, fate := c.connected(ctx); errors.Is(fate, ErrDead) {
		return fate
	}
	return err
}

// exit waits for the end of a kernel that a cell has told to exit. A thread of a cell may hold that
// up: the kernel is stopped then.
func (c *Client) exit(ctx context.Context, conn *connection) error {
	c.mu.Lock()
	conn.exits = true
	c.mu.Unlock()
	late := time.NewTimer(exitWait)
	defer late.Stop()
	select {
	case <-conn.gone:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-late.C:
		if _, err := tool(ctx, c.box, c.config.Kernel, "--stop"); err != nil {
			return err
		}
	}
	_, err := c.fate(ctx, conn)
	return err
}

// waitTurn takes the turn that the channel stands for: the caller then receives from the channel to
// end its turn.
func waitTurn(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}

// Interrupt interrupts the cell that this Client runs, as soon as it has begun, and returns when it
// has ended. Python raises KeyboardInterrupt. That may get lost, for instance in a finalizer; so
// the interrupt is repeated each second, and after ten the error is ErrStuck. If this Client runs
// no cell, the kernel's cell is interrupted once; it may be another client's.
func (c *Client) Interrupt(ctx context.Context) error {
	err := c.with(ctx, func(ctx context.Context, conn *connection) error {
		c.mu.Lock()
		running := c.cell
		if running != nil {
			running.interrupting.Add(1)
		}
		c.mu.Unlock()
		if running != nil {
			defer running.interrupting.Done()
			return running.interruptFromOutside(ctx)
		}
		_, err := conn.ask(ctx, control, "interrupt_request", struct{}{})
		return err
	})
	if err != nil {
		return fmt.Errorf("interrupt kernel %s: %w", c.config.Kernel, err)
	}
	return nil
}

// with calls f with the connection, as a call for which Close waits.
func (c *Client) with(ctx context.Context, f func(context.Context, *connection) error) error {
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	return c.withConnection(ctx, f)
}

func (c *Client) withConnection(ctx context.Context,
	f func(context.Context, *connection) error) error {
	conn, err := c.connected(ctx)
	if err != nil {
		return err
	}
	if err := f(ctx, conn); err != nil {
		return c.explain(ctx, conn, err)
	}
	return nil
}

// ask sends a request and returns the reply.
func (c *connection) ask(ctx context.Context, channel, kind string, content any) (*message, error) {
	r, err := c.send(channel, kind, content)
	defer c.forget(r)
	if err != nil {
		return nil, err
	}
	for {
		m, err := c.next(ctx, r, nil)
		if err != nil || m.channel == channel {
			return m, err
		}
	}
}

// Restart ends the kernel, if it lives, with all processes of its cells, and starts a fresh one. A
// Run under way, of any Client, gets a *DeadError.
func (c *Client) Restart(ctx context.Context) error {
	ctx, done, err := c.begin(ctx)
	if err == nil {
		defer done()
		err = waitTurn(ctx, c.connecting)
	}
	if err == nil {
		defer func() { <-c.connecting }()
		err = c.start(ctx, "--restart")
	}
	if err != nil {
		return fmt.Errorf("restart kernel %s: %w", c.config.Kernel, err)
	}
	return nil
}

// Stop ends the kernel with all processes of its cells. Restart, or a new Client, starts it again.
func (c *Client) Stop(ctx context.Context) error {
	ctx, done, err := c.begin(ctx)
	if err == nil {
		defer done()
		_, err = tool(ctx, c.box, c.config.Kernel, "--stop")
	}
	if err != nil {
		return fmt.Errorf("stop kernel %s: %w", c.config.Kernel, err)
	}
	return nil
}

// Close ends the connection. The kernel keeps running, with its state, until Stop or the end of the
// sandbox. So does a cell under way; its Run returns sandbox.ErrClosed. Closing again does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	closed, conn := c.closed, c.conn
	c.closed = true
	for end := range c.ends {
		(*end)(sandbox.ErrClosed)
	}
	c.mu.Unlock()
	if !closed {
		conn.close()
	}
	c.calls.Wait()
	return nil
}
