package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
	"golang.org/x/crypto/ssh"
)

// A Conn is an SSH connection, and the goroutines that run on it. All methods may be called from
// several goroutines.
type Conn struct {
	*Group
	Client   ssh.Conn // its channels and global requests
	line     *meter
	announce func(*Conn, ssh.NewChannel)
	forwards forwards
	keeps    chan keeper
	answers  atomic.Int64 // the memory of the answers that the server has not read yet

	gone chan struct{} // closed when the connection has ended
	why  error         // why it has ended; set before gone is closed

	mu    sync.Mutex
	cause error  // why this side ended it
	onEnd func() // called when the connection has ended; may be nil
	// onNotice is called with the names of global requests that want no reply; may be nil.
	onNotice func(name string)
	notices  []string // those that came before onNotice was set; the first few
}

// Handshake makes an SSH connection on raw, which belongs to it from then on. If ctx ends first,
// Handshake returns: x/crypto sets no limit of its own, and a server may accept the connection and
// then be silent for ever.
//
// announce is called for each channel that the server opens, one after the other. It accepts or
// rejects the channel, at once or later. It must not block. If announce is nil, the server may open
// the channels that Conn.Listen has asked for.
//
// If the server hangs up before it has sent anything, the error is an *UnwelcomeError.
func Handshake(ctx context.Context, raw net.Conn, address string, config *ssh.ClientConfig,
	announce func(*Conn, ssh.NewChannel)) (*Conn, error) {
	line := &meter{Conn: &gatherer{Conn: raw}}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		raw.Close()
		close(interrupted)
	})
	c, channels, requests, err := ssh.NewClientConn(line, address, config)
	if !stop() {
		<-interrupted
		if err == nil {
			c.Close()
		}
		return nil, ctxerr.Of(ctx)
	}
	if err != nil {
		raw.Close()
		if line.received.Load() == 0 {
			return nil, &UnwelcomeError{err}
		}
		return nil, err
	}
	if announce == nil {
		announce = (*Conn).announceForwarded
	}
	return newConn(c, line, channels, requests, announce), nil
}

// ErrNoHandshake is the cause of a context that has ended because it bounds a handshake.
var ErrNoHandshake = errors.New("no SSH handshake")

// An UnwelcomeError says that the server hung up before it sent anything. OpenSSH does so when too
// many connections have not logged in yet (MaxStartups).
type UnwelcomeError struct{ err error }

func (e *UnwelcomeError) Error() string {
	return "the server closed the connection before it said anything: " + e.err.Error()
}
func (e *UnwelcomeError) Unwrap() error { return e.err }

// serve answers the server, and asks it for signs of life, until the connection ends. Nothing in it
// waits for the network. (An ssh.Client takes three goroutines for less.)
func (c *Conn) serve(channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	var keep keeper
	tick := new(time.Ticker) // none, until there is a keeper
	for channels != nil || requests != nil {
		select {
		case ch, ok := <-channels:
			if !ok {
				channels = nil
				break
			}
			if len(ch.ExtraData()) > extraMax {
				c.Reject(ch, ssh.ResourceShortage, "its description is too long")
				break
			}
			c.announce(c, ch)
		case r, ok := <-requests:
			if !ok {
				requests = nil
			} else if r.WantReply {
				// A server asks for a sign of life by a request that no client knows.
				c.Answer(len(r.Payload), func() { r.Reply(false, nil) })
			} else {
				c.notice(r.Type)
			}
		case keep = <-c.keeps:
			tick = time.NewTicker(keep.interval)
			defer tick.Stop()
		case <-tick.C:
			if err := keep.check(c); err != nil {
				c.Abort(err)
				tick.Stop()
			}
		}
	}
	err := c.Client.Wait()
	c.mu.Lock()
	if c.cause != nil {
		err = c.cause
	}
	c.why = err
	close(c.gone)
	onEnd := c.onEnd
	c.mu.Unlock()
	c.forwards.end()
	if onEnd != nil {
		onEnd()
	}
}

// OnEnd calls f when the connection has ended. If it has ended already, OnEnd calls f at once. f
// must not block. Unlike waiting for Gone, OnEnd needs no goroutine. A second OnEnd before the end
// replaces the first.
func (c *Conn) OnEnd(f func()) {
	c.mu.Lock()
	ended := c.Ended()
	c.onEnd = f
	c.mu.Unlock()
	if ended {
		f()
	}
}

// Abort ends the connection and does not wait for the end. If the connection has not ended yet, the
// cause of the first Abort becomes its Err.
func (c *Conn) Abort(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	c.Client.Close()
}

// Close ends the connection and waits for the goroutines of its Group.
func (c *Conn) Close() {
	c.Stop()
	c.Abort(net.ErrClosed)
	c.Wait()
}

// Gone returns a channel that is closed when the connection has ended.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// Err returns why the connection has ended. If this side has closed it, that is net.ErrClosed. Err
// may be called once Gone is closed.
func (c *Conn) Err() error { return c.why }

// Ended reports whether the connection has ended.
func (c *Conn) Ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Broken reports whether this side knows that the connection has ended or is about to. If so, an
// io.EOF from a channel does not mean that all of its data has arrived.
func (c *Conn) Broken() bool { return c.line.broken.Load() || c.Ended() }

// CheckEnded reports whether the connection has ended or is about to. Channels and writes fail a
// moment before Gone is closed, with various errors. So CheckEnded asks the server. If the server
// answers, or ctx ends first, CheckEnded returns false.
func (c *Conn) CheckEnded(ctx context.Context) bool {
	if c.Ended() {
		return true
	}
	select {
	case <-c.gone:
		return true
	case <-c.Ping():
	case <-ctx.Done():
	}
	return false
}

// Ping asks the server for a sign of life. It returns a channel that is closed when the server has
// answered.
func (c *Conn) Ping() <-chan struct{} {
	answer := make(chan struct{})
	c.Run(func() {
		// Every server answers a global request that wants a reply. If it does not know the
		// request, it refuses it.
		if _, _, err := c.Client.SendRequest("keepalive@openssh.com", true, nil); err == nil {
			close(answer)
		}
	})
	return answer
}

// ErrGone says that the connection has ended.
var ErrGone = errors.New("the connection is gone")

// A RefusedError says that the server has refused a global request.
type RefusedError struct {
	Request string
	Reply   []byte // the reason, if the server gives one
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server refuses %s: %s", e.Request, printable.Text(string(e.Reply)))
}

// Request makes a global request. If the server refuses it, the error is a *RefusedError.
func (c *Conn) Request(ctx context.Context, name string, payload []byte) (reply []byte, err error) {
	return c.RequestOrUndo(ctx, name, payload, nil)
}

// RequestOrUndo is like Request. If ctx ends first and the server grants the request later, it also
// calls undo, in a goroutine of the connection's Group. undo may be nil.
func (c *Conn) RequestOrUndo(ctx context.Context, name string, payload []byte,
	undo func(reply []byte)) (reply []byte, err error) {
	type answer struct {
		reply []byte
		err   error
	}
	answered := make(chan answer)
	if !c.Run(func() {
		ok, reply, err := c.Client.SendRequest(name, true, payload)
		if err == nil && !ok {
			err = &RefusedError{name, reply}
		}
		select {
		case answered <- answer{reply, err}:
		case <-c.gone:
		case <-ctx.Done():
			if err == nil && undo != nil {
				undo(reply)
			}
		}
	}) {
		return nil, ErrGone
	}
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-c.gone:
		return nil, ErrGone
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
}

// OpenChannel opens a channel. If ctx ends first, OpenChannel returns at once. If the server opens
// the channel later, it is closed.
func (c *Conn) OpenChannel(ctx context.Context, kind string,
	extra []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	o := c.openInBackground(ctx.Done(), func() opened {
		ch, requests, err := c.Client.OpenChannel(kind, extra)
		return opened{ch, requests, err}
	})
	if o.err == errGivenUp {
		o.err = ctxerr.Of(ctx)
	}
	return o.ch, o.requests, o.err
}

// opened is the result of opening a channel.
type opened struct {
	ch       ssh.Channel
	requests <-chan *ssh.Request
	err      error
}

// errGivenUp says that this side waits no longer.
var errGivenUp = errors.New("given up")

// openInBackground calls open in a goroutine, and returns its result. If done is closed first,
// openInBackground returns errGivenUp. If open returns a channel later, the channel is closed.
func (c *Conn) openInBackground(done <-chan struct{}, open func() opened) opened {
	got := make(chan opened)
	if !c.Run(func() {
		o := open()
		select {
		case got <- o:
		case <-c.gone:
		case <-done:
			if o.err == nil {
				o.ch.Close()
				ssh.DiscardRequests(o.requests)
			}
		}
	}) {
		return opened{err: ErrGone}
	}
	select {
	case o := <-got:
		return o
	case <-c.gone:
		return opened{err: ErrGone}
	case <-done:
		return opened{err: errGivenUp}
	}
}

// Reason returns in words why the connection has ended. If the words do not say everything, it also
// returns the error. Reason may be called once Gone is closed.
func (c *Conn) Reason() (string, error) {
	switch {
	case errors.Is(c.why, errSilent):
		return "the server does not answer", c.why
	case errors.Is(c.why, io.EOF), errors.Is(c.why, io.ErrUnexpectedEOF):
		return "connection closed by the server", nil
	case errors.Is(c.why, syscall.ECONNRESET), errors.Is(c.why, syscall.EPIPE):
		return "connection reset by the server", nil
	case errors.Is(c.why, net.ErrClosed):
		return "connection closed", nil
	}
	return "connection broken", c.why
}

// A meter counts the bytes that it reads. x/crypto reads 4 KiB at a time. While much data arrives,
// the meter reads larger pieces from the connection. While little arrives, it holds no buffer.
type meter struct {
	net.Conn
	large    *[meterSize]byte // nil while little data arrives
	rest     []byte           // the part of large that x/crypto has not read yet
	lastFull bool             // the last read has filled its buffer
	received atomic.Uint64
	broken   atomic.Bool              // a read has failed: writes do too
	conn     atomic.Pointer[ssh.Conn] // x/crypto's connection; nil until it is made
}

const meterSize = 64 << 10

var meterBuffers = sync.Pool{New: func() any { return new([meterSize]byte) }}

func (m *meter) Read(p []byte) (n int, err error) {
	switch {
	case len(m.rest) > 0:
		n = m.takeRest(p)
	case m.lastFull:
		if m.large == nil {
			m.large = meterBuffers.Get().(*[meterSize]byte)
		}
		n, err = m.Conn.Read(m.large[:])
		m.rest, m.lastFull = m.large[:n], n == meterSize
		if n > 0 {
			n, err = m.takeRest(p), nil // the next read returns the error again
		}
	default:
		n, err = m.Conn.Read(p)
		m.lastFull = n == len(p)
	}
	m.received.Add(uint64(n))
	if err != nil {
		m.failWrites()
	}
	return n, err
}

// takeRest copies from rest to p.
func (m *meter) takeRest(p []byte) int {
	n := copy(p, m.rest)
	if m.rest = m.rest[n:]; len(m.rest) == 0 && !m.lastFull {
		meterBuffers.Put(m.large)
		m.large = nil
	}
	return n
}
