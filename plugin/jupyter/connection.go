package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/plugin/jupyter/internal/zmtp"
	"github.com/sandshell/sandshell/sandbox"
)

// The channels of a kernel.
const (
	shell   = "shell"   // requests, which wait for the cells before them
	control = "control" // requests that do not wait
	stdin   = "stdin"   // questions of a cell, and their answers
	iopub   = "iopub"   // output of cells
)

// iopubWait is how long the messages about a request may take to arrive on iopub after its reply.
// Some never arrive: a ZeroMQ publisher drops messages that nobody has subscribed to yet, and
// messages for a subscriber that is too slow.
const iopubWait = 100 * time.Millisecond

// restWait is how long the last output of a dead kernel may take to arrive.
const restWait = time.Second

// A connection has one socket for each channel of a kernel.
type connection struct {
	kernel     string // the id of the kernel
	session    string
	key        signer
	channels   map[string]*zmtp.Conn
	goroutines sync.WaitGroup
	exiting    bool // whether a cell has told the kernel to exit; under Client.mu

	mu         sync.Mutex
	requests   map[string]*request // by the ids of their messages
	err        error               // why gone is closed
	closing    bool
	gone       chan struct{}
	iopubEnded chan struct{}
}

// dial connects to a kernel.
func dial(ctx context.Context, box sandbox.Sandbox, k *kernelInfo) (*connection, error) {
	c := &connection{
		kernel: k.ID, session: newID(), key: signer(k.Connection.Key),
		channels: map[string]*zmtp.Conn{},
		requests: map[string]*request{}, gone: make(chan struct{}), iopubEnded: make(chan struct{}),
	}
	type dialed struct {
		channel string
		conn    *zmtp.Conn
		err     error
	}
	all := make(chan dialed)
	for channel, port := range map[string]int{
		shell: k.Connection.Shell, control: k.Connection.Control, stdin: k.Connection.Stdin,
		iopub: k.Connection.IOPub,
	} {
		go func() {
			d := dialed{channel: channel}
			conn, err := box.Dial(ctx, "unix", fmt.Sprintf("%s-%d", k.Connection.IP, port))
			if d.err = err; err == nil {
				kind := zmtp.Dealer
				if channel == iopub {
					kind = zmtp.Sub
				}
				// The kernel sends a cell's question on stdin to the identity that has sent the
				// cell on shell, so all channels have the same identity.
				d.conn, d.err = zmtp.NewConn(ctx, conn, kind, c.session)
			}
			all <- d
		}()
	}
	var err error
	for range 4 {
		d := <-all
		if d.err != nil {
			err = fmt.Errorf("connect to the kernel's channel %s: %w", d.channel, d.err)
			continue
		}
		c.channels[d.channel] = d.conn
	}
	if err != nil {
		for _, conn := range c.channels {
			conn.Close()
		}
		return nil, err
	}
	for channel, conn := range c.channels {
		c.goroutines.Go(func() { c.read(channel, conn) })
	}
	if err := c.subscribe(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// subscribe subscribes to iopub, and returns when its messages arrive.
func (c *connection) subscribe(ctx context.Context) error {
	if err := c.channels[iopub].Subscribe(""); err != nil {
		return err
	}
	for {
		// On control the request does not wait for a cell that runs.
		r, err := c.send(ctx, control, "kernel_info_request", struct{}{})
		if err != nil {
			return err
		}
		subscribed, err := c.iopubAnswers(ctx, r)
		c.forget(r)
		if subscribed || err != nil {
			return err
		}
	}
}

// iopubAnswers reports whether a message about r arrives on iopub, at the latest iopubWait after
// r's reply.
func (c *connection) iopubAnswers(ctx context.Context, r *request) (bool, error) {
	var late <-chan time.Time
	for {
		m, err := c.nextMessage(ctx, r, late)
		switch {
		case err != nil:
			return false, err
		case m == nil:
			return false, nil
		case m.channel == iopub:
			return true, nil
		}
		timer := time.NewTimer(iopubWait)
		defer timer.Stop()
		late = timer.C
	}
}

// read gives the messages of a channel to the requests that they are about, until the channel ends.
func (c *connection) read(channel string, conn *zmtp.Conn) {
	for {
		z, err := conn.Receive()
		var m *message
		if err == nil {
			m, err = c.key.decode(channel, z)
		}
		if err != nil {
			c.channelEnded(channel, err)
			return
		}
		c.mu.Lock()
		r := c.requests[m.parent]
		if r != nil {
			err = r.enqueueLocked(m)
		}
		unwanted := r != nil && r.abandoned && m.header.Type == "execute_input"
		if unwanted && !c.closing {
			c.goroutines.Go(func() {
				sent, _ := c.send(context.Background(), control, "interrupt_request", struct{}{})
				c.forget(sent)
			})
		}
		if r != nil && r.abandoned && channel == shell {
			delete(c.requests, m.parent)
		}
		c.mu.Unlock()
		if err != nil {
			c.channelEnded(channel, err)
			return
		}
	}
}

// channelEnded ends the connection after the end of a channel. When a kernel dies, all channels end
// at once, and its last output has yet to be read from iopub.
func (c *connection) channelEnded(channel string, err error) {
	if channel == iopub {
		close(c.iopubEnded)
	} else {
		rest := time.NewTimer(restWait)
		defer rest.Stop()
		select {
		case <-c.iopubEnded:
		case <-c.gone:
		case <-rest.C:
		}
	}
	c.fail(err)
}

// fail ends the connection with err, unless it has ended.
func (c *connection) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.gone)
		for _, conn := range c.channels {
			conn.Close()
		}
	}
}

// close ends the connection and waits for its goroutines.
func (c *connection) close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.fail(sandbox.ErrClosed)
	c.goroutines.Wait()
}

// send sends a request. The caller must call forget in the end.
func (c *connection) send(ctx context.Context, channel, kind string,
	content any) (*request, error) {
	h := newHeader(c.session, kind)
	r := &request{ids: []string{h.ID}, ready: make(chan struct{}, 1)}
	return r, c.sendMessage(ctx, r, h, channel, nil, content)
}

// sendFollowUp sends another request, whose replies arrive with those of r, and returns its id. The
// request is small. It is also sent when the ctx of the caller's call has ended.
func (c *connection) sendFollowUp(r *request, channel, kind string, content any) (string, error) {
	h := newHeader(c.session, kind)
	c.mu.Lock()
	r.ids = append(r.ids, h.ID)
	c.mu.Unlock()
	return h.ID, c.sendMessage(context.Background(), r, h, channel, nil, content)
}

// sendReply sends the reply to m, a request of the kernel.
func (c *connection) sendReply(ctx context.Context, m *message, kind string, content any) error {
	h := newHeader(c.session, kind)
	return c.sendMessage(ctx, nil, h, m.channel, m.rawHeader, content)
}

// sendMessage sends a message. If r is not nil, r gets the messages about it. If ctx ends before
// the peer has taken the whole message, sendMessage ends the connection, because nothing can follow
// a part of a message.
func (c *connection) sendMessage(ctx context.Context, r *request, h header, channel string,
	parent json.RawMessage, content any) error {
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	frames, err := c.key.encode(h, parent, content)
	if err != nil {
		return err
	}
	if r != nil {
		c.mu.Lock()
		c.requests[h.ID] = r
		c.mu.Unlock()
	}
	var over atomic.Bool // set by the return of Send or the end of ctx: the first of the two
	stop := context.AfterFunc(ctx, func() {
		if over.CompareAndSwap(false, true) {
			c.fail(errors.New("a call ended before its message was sent"))
		}
	})
	err = c.channels[channel].Send(frames...)
	if !over.CompareAndSwap(false, true) {
		return ctxerr.Of(ctx)
	}
	stop()
	if err != nil {
		c.fail(err)
		return c.goneErr()
	}
	return nil
}

// goneErr returns the error of a connection that has ended.
func (c *connection) goneErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &goneError{c.err}
}

// forget drops a request. Later messages about it are dropped too.
func (c *connection) forget(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range r.ids {
		delete(c.requests, id)
	}
}

// abandon makes the connection interrupt the cell of r as soon as it begins.
func (c *connection) abandon(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.abandoned, r.messages = true, nil
}

// A goneError says that the connection has ended, most often because the kernel has died.
type goneError struct{ err error }

func (e *goneError) Error() string {
	return "the connection to the kernel has ended: " + e.err.Error()
}
func (e *goneError) Unwrap() error { return e.err }
