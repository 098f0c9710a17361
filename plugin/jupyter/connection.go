package jupyter

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
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

// probeWait is how long after the reply to a request its messages on iopub may arrive. Some never
// do: a ZeroMQ publisher drops messages that nobody has subscribed to yet, and those that it cannot
// get rid of.
const probeWait = 100 * time.Millisecond

// restWait is how long the last output of a dead kernel may take to arrive.
const restWait = time.Second

// A connection consists of one connection to each channel of a kernel.
type connection struct {
	kernel   string // its id
	session  string
	key      signer
	channels map[string]*zmtp.Conn
	work     sync.WaitGroup // all goroutines
	exits    bool           // a cell has told the kernel to exit; under Client.mu

	mu       sync.Mutex
	requests map[string]*request // by the ids of messages
	err      error               // the reason for gone
	closing  bool
	gone     chan struct{}
	shown    chan struct{} // closed at the end of iopub
}

// dial connects to a kernel.
func dial(ctx context.Context, box sandbox.Sandbox, k *running) (*connection, error) {
	c := &connection{
		kernel: k.ID, session: newID(), key: signer(k.Connection.Key),
		channels: map[string]*zmtp.Conn{},
		requests: map[string]*request{}, gone: make(chan struct{}), shown: make(chan struct{}),
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
				// The kernel sends a cell's question on stdin to the identity that sent the cell on
				// shell: both are the same.
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
		c.work.Go(func() { c.read(channel, conn) })
	}
	if err := c.subscribe(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// subscribe returns when messages on iopub arrive.
func (c *connection) subscribe(ctx context.Context) error {
	if err := c.channels[iopub].Subscribe(""); err != nil {
		return err
	}
	for {
		// control: it does not wait for a cell that runs
		r, err := c.send(control, "kernel_info_request", struct{}{})
		if err != nil {
			return err
		}
		heard, err := c.hears(ctx, r)
		c.forget(r)
		if heard || err != nil {
			return err
		}
	}
}

// hears reports whether a message about r has arrived on iopub by probeWait after r's reply.
func (c *connection) hears(ctx context.Context, r *request) (bool, error) {
	var late <-chan time.Time
	for {
		m, err := c.next(ctx, r, late)
		switch {
		case err != nil:
			return false, err
		case m == nil:
			return false, nil
		case m.channel == iopub:
			return true, nil
		}
		timer := time.NewTimer(probeWait)
		defer timer.Stop()
		late = timer.C
	}
}

// read hands the messages of a channel to the requests that they are about, until the channel ends.
func (c *connection) read(channel string, conn *zmtp.Conn) {
	for {
		z, err := conn.Receive()
		var m *message
		if err == nil {
			m, err = c.key.decode(channel, z)
		}
		if err != nil {
			c.ended(channel, err)
			return
		}
		c.mu.Lock()
		r := c.requests[m.parent]
		if r != nil {
			err = r.put(m)
		}
		unwanted := r != nil && r.abandoned && m.header.Type == "execute_input"
		if unwanted && !c.closing {
			c.work.Go(func() {
				sent, _ := c.send(control, "interrupt_request", struct{}{})
				c.forget(sent)
			})
		}
		if r != nil && r.abandoned && channel == shell {
			delete(c.requests, m.parent)
		}
		c.mu.Unlock()
		if err != nil {
			c.ended(channel, err)
			return
		}
	}
}

// ended handles the end of a channel. When a kernel dies, all channels end at once; its last output
// is still to be read from iopub.
func (c *connection) ended(channel string, err error) {
	if channel == iopub {
		close(c.shown)
	} else {
		rest := time.NewTimer(restWait)
		defer rest.Stop()
		select {
		case <-c.shown:
		case <-c.gone:
		case <-rest.C:
		}
	}
	c.fail(err)
}

// fail ends the connection.
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
	c.work.Wait()
}

// send sends a request. The caller has to call forget in the end.
func (c *connection) send(channel, kind string, content any) (*request, error) {
	h := newHeader(c.session, kind)
	r := &request{ids: []string{h.ID}, ready: make(chan struct{}, 1)}
	return r, c.sendAs(r, h, channel, nil, content)
}

// also sends another request, whose answers arrive with those of r, and returns its id.
func (c *connection) also(r *request, channel, kind string, content any) (string, error) {
	h := newHeader(c.session, kind)
	c.mu.Lock()
	r.ids = append(r.ids, h.ID)
	c.mu.Unlock()
	return h.ID, c.sendAs(r, h, channel, nil, content)
}

// answer sends the reply to the kernel's request m.
func (c *connection) answer(m *message, kind string, content any) error {
	return c.sendAs(nil, newHeader(c.session, kind), m.channel, m.rawHeader, content)
}

func (c *connection) sendAs(r *request, h header, channel string, parent json.RawMessage,
	content any) error {
	frames, err := c.key.encode(h, parent, content)
	if err != nil {
		return err
	}
	if r != nil {
		c.mu.Lock()
		c.requests[h.ID] = r
		c.mu.Unlock()
	}
	if err := c.channels[channel].Send(frames...); err != nil {
		c.fail(err)
		return c.why()
	}
	return nil
}

// why returns the reason for the end of the connection.
func (c *connection) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &goneError{c.err}
}

// forget drops a request, and messages about it that arrive later.
func (c *connection) forget(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range r.ids {
		delete(c.requests, id)
	}
}

// abandon has the cell of r interrupted as soon as it begins.
func (c *connection) abandon(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.abandoned, r.messages = true, nil
}

// A request has been sent to the kernel. It collects the messages about it.
type request struct {
	ids   []string
	ready chan struct{} // not empty when messages is not

	messages  []*message // under connection.mu
	size      int64      // bytes of messages
	omitted   int64      // bytes of output that were dropped
	abandoned bool
}

// put adds a message. The kernel does not wait for slow readers: output beyond pendingMax is
// dropped. Of other messages, an honest kernel does not send as many again.
func (r *request) put(m *message) error {
	if r.abandoned {
		return nil
	}
	most := int64(2 * pendingMax)
	if m.channel == iopub && m.shows() {
		most = pendingMax
	}
	if r.size+m.size > most {
		if most > pendingMax {
			return &bounded.TooLargeError{What: "what the kernel says of a request", Max: most}
		}
		r.omitted += m.size
		return nil
	}
	r.size += m.size + messageCost
	r.messages = append(r.messages, m)
	select {
	case r.ready <- struct{}{}:
	default:
	}
	return nil
}

// pendingMax is how many bytes of a cell's output may wait for the function given to Stream;
// messageCost is what a message needs beside its frames.
const (
	pendingMax  = 5 << 20
	messageCost = 1024
)

// shows reports whether a message is output, which may be dropped.
func (m *message) shows() bool {
	switch m.header.Type {
	case "stream", "display_data", "execute_result", "update_display_data":
		return true
	}
	return m.omitted > 0
}

// next waits for the next message about r and returns it, or nil if late fires first.
func (c *connection) next(ctx context.Context, r *request,
	late <-chan time.Time) (*message, error) {
	for {
		// Looked at here too: a cell that never stops printing always has a message ready.
		if err := ctxerr.Of(ctx); err != nil {
			return nil, err
		}
		c.mu.Lock()
		if len(r.messages) > 0 {
			m := r.messages[0]
			r.messages = r.messages[1:]
			r.size -= m.size + messageCost
			c.mu.Unlock()
			return m, nil
		}
		c.mu.Unlock()
		select {
		case <-r.ready:
			continue
		default:
		}
		select {
		case <-r.ready:
		case <-late:
			return nil, nil
		case <-ctx.Done():
			return nil, ctxerr.Of(ctx)
		case <-c.gone:
			select {
			case <-r.ready: // what came before
				continue
			default:
			}
			return nil, c.why()
		}
	}
}

// A goneError says that the connection has ended, most often because the kernel has died.
type goneError struct{ err error }

func (e *goneError) Error() string {
	return "the connection to the kernel has ended: " + e.err.Error()
}
func (e *goneError) Unwrap() error { return e.err }
