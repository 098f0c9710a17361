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

// A Client runs cells in one kernel. Connect makes one.
type Client struct {
	box  sandbox.Sandbox
	name string
	dir  string

	turn       chan struct{} // full while a cell runs
	connecting chan struct{} // full while conn is made

	life  context.Context // until Close
	end   context.CancelCauseFunc
	calls sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conn   *connection
	dead   error // the death of conn's kernel, if it has died
	cell   *cell // the one that runs
}

// A ConnectOption is an option of Connect.
type ConnectOption func(*Client)

// Kernel names the kernel: up to 64 letters, digits, "-", "_" and ".", a letter or digit first.
// Default: DefaultKernel.
func Kernel(name string) ConnectOption { return func(c *Client) { c.name = name } }

// Dir is the working directory of a kernel that Connect starts. Default: the sandbox's.
func Dir(path string) ConnectOption { return func(c *Client) { c.dir = path } }

// Connect connects to a kernel in the sandbox, and starts it if it does not run or has died. The
// sandbox has to have the plugin, or the error is ErrNotInstalled. ctx governs the call only.
func Connect(ctx context.Context, sb sandbox.Sandbox, opts ...ConnectOption) (*Client, error) {
	c := &Client{box: sb, name: DefaultKernel, turn: make(chan struct{}, 1),
		connecting: make(chan struct{}, 1)}
	for _, opt := range opts {
		opt(c)
	}
	if !validName.MatchString(c.name) {
		return nil, fmt.Errorf("jupyter: connect to kernel %q: a name has up to 64 letters, "+
			"digits, \"-\", \"_\" and \".\", and a letter or digit first", c.name)
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	if err := c.start(ctx); err != nil {
		c.end(nil)
		return nil, fmt.Errorf("jupyter: connect to kernel %s: %w", c.name, err)
	}
	return c, nil
}

// start has execute_cli start the kernel if it does not run, and connects to it.
func (c *Client) start(ctx context.Context, args ...string) error {
	if c.dir != "" {
		args = append(args, "--dir", c.dir)
	}
	status, err := tool(ctx, c.box, c.name, append(args, "--connect")...)
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

// call begins a call that Close waits for. The context that it returns ends with ctx, or when Close
// begins.
func (c *Client) call(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, sandbox.ErrClosed
	}
	if err := ctxerr.Of(ctx); err != nil {
		return nil, nil, err
	}
	c.calls.Add(1)
	ctx, cancel := ctxerr.WithCancel(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(sandbox.ErrClosed) })
	return ctx, func() { stop(); cancel(nil); c.calls.Done() }, nil
}

// connected returns the connection. One that was cut is made anew; if the kernel has died, the
// error says how.
func (c *Client) connected(ctx context.Context) (*connection, error) {
	if err := take(ctx, c.connecting); err != nil {
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
	status, err := tool(ctx, c.box, c.name, "--status")
	if err != nil {
		return nil, fmt.Errorf("%w; nor can the sandbox be asked: %w", conn.why(), err)
	}
	dead := status.died(c.name, conn.kernel)
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
		if _, err := tool(ctx, c.box, c.name, "--stop"); err != nil {
			return err
		}
	}
	_, err := c.fate(ctx, conn)
	return err
}

// take waits for a turn.
func take(ctx context.Context, turn chan struct{}) error {
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
		return fmt.Errorf("interrupt kernel %s: %w", c.name, err)
	}
	return nil
}

// with calls f with the connection, as a call that Close waits for.
func (c *Client) with(ctx context.Context, f func(context.Context, *connection) error) error {
	ctx, done, err := c.call(ctx)
	if err != nil {
		return err
	}
	defer done()
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
	ctx, done, err := c.call(ctx)
	if err == nil {
		defer done()
		err = take(ctx, c.connecting)
	}
	if err == nil {
		defer func() { <-c.connecting }()
		err = c.start(ctx, "--restart")
	}
	if err != nil {
		return fmt.Errorf("restart kernel %s: %w", c.name, err)
	}
	return nil
}

// Stop ends the kernel with all processes of its cells. Restart, or a new Client, starts it again.
func (c *Client) Stop(ctx context.Context) error {
	ctx, done, err := c.call(ctx)
	if err == nil {
		defer done()
		_, err = tool(ctx, c.box, c.name, "--stop")
	}
	if err != nil {
		return fmt.Errorf("stop kernel %s: %w", c.name, err)
	}
	return nil
}

// Close ends the connection. The kernel keeps running, with its state, until Stop or the end of the
// sandbox. So does a cell under way; its Run returns sandbox.ErrClosed. Closing again does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	closed, conn := c.closed, c.conn
	c.closed = true
	c.mu.Unlock()
	if !closed {
		c.end(sandbox.ErrClosed)
		conn.close()
	}
	c.calls.Wait()
	return nil
}
