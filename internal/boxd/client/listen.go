package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

var (
	_ shellbox.ListenHost = (*Host)(nil)
	_ hostapi.Outwarder   = (*Host)(nil)
)

// A listener is an address on which boxd listens for this Host. Like a program, it outlives a
// connection to boxd. On the next one, boxd announces the connections that have come in between.
type listener struct {
	*sshconn.Listener
	link *link
	what wire.Listen // link.mu guards it
}

// Listen implements shellbox.ListenHost. If the connection to the box is cut, reads and writes of
// accepted connections fail with sandbox.ErrCut. The listener itself goes on.
func (h *Host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return h.listen(ctx, network, address)
}

// ListenOutward implements hostapi.Outwarder.
func (h *Host) ListenOutward(ctx context.Context) (net.Listener, error) {
	return h.listen(ctx, wire.OutwardNetwork, "")
}

func (h *Host) listen(ctx context.Context, network, address string) (net.Listener, error) {
	l := &listener{sshconn.NewListener(nil, func() error {
		return sandbox.ErrCut
	}), h.link, wire.Listen{ID: rand.Text(), Network: network, Address: address}}
	h.link.mu.Lock()
	// From here on it survives a cut, and connections may come.
	h.link.listeners[l.what.ID] = l
	h.link.mu.Unlock()
	at, err := l.begin(ctx, l.what)
	if err != nil {
		l.forget()
		return nil, &net.OpError{Op: "listen", Net: network,
			Addr: sshconn.Address(network, address), Err: h.explain(err)}
	}
	l.Address = sshconn.Address(network, at)
	if network != wire.OutwardNetwork {
		h.link.mu.Lock()
		l.what.Address = at // of a free port, the one that it has got
		h.link.mu.Unlock()
	}
	if lost := h.link.lostCause(); lost != nil {
		l.End(h.explain(lost))
	}
	return l, nil
}

// begin makes boxd listen, and returns the address. If the connection is cut before the answer,
// begin asks again on the next one.
func (l *listener) begin(ctx context.Context, what wire.Listen) (address string, err error) {
	payload, err := json.Marshal(what)
	if err != nil {
		return "", err
	}
	for {
		conn, err := l.link.connection(ctx)
		if err != nil {
			return "", err
		}
		reply, err := conn.RequestOrUndo(ctx, wire.ListenRequest, payload, func([]byte) {
			l.unlistenOn(conn)
		})
		var refused *sshconn.RefusedError
		switch {
		case err == nil:
			return string(reply), nil
		case errors.As(err, &refused):
			return "", failure(refused.Reply)
		case ctx.Err() != nil || cutOr(ctx, conn, err) != errCut:
			return "", err
		}
	}
}

// again asks for the address on a new connection. While the connection was cut, boxd may have given
// the address to another program that uses the box; then the listener ends.
func (l *listener) again(ctx context.Context, conn *sshconn.Conn) error {
	l.link.mu.Lock()
	payload, err := json.Marshal(l.what)
	l.link.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = conn.RequestOrUndo(ctx, wire.ListenRequest, payload, func([]byte) {})
	var refused *sshconn.RefusedError
	if errors.As(err, &refused) {
		l.End(failure(refused.Reply))
		l.forget()
		return nil
	}
	return err
}

// unlistenOn tells boxd to stop listening.
func (l *listener) unlistenOn(conn *sshconn.Conn) {
	conn.Client.SendRequest(wire.UnlistenRequest, true, []byte(l.what.ID))
}

// forget removes the listener from the next wire.HoldRequest, so that boxd ends it.
func (l *listener) forget() {
	l.link.mu.Lock()
	defer l.link.mu.Unlock()
	delete(l.link.listeners, l.what.ID)
}

// unlistenLimit bounds Close's wait for boxd: the box may be paused.
const unlistenLimit = 5 * time.Second

// Close implements net.Listener. It returns when boxd no longer listens. While there is no
// connection, boxd learns of it on the next one.
func (l *listener) Close() error {
	if !l.End(net.ErrClosed) {
		return nil
	}
	l.forget()
	ended := make(chan struct{})
	if !l.link.Run(func() {
		defer close(ended)
		// connection returns when the link is closed
		if conn, err := l.link.connection(context.Background()); err == nil {
			l.unlistenOn(conn)
		}
	}) {
		return nil
	}
	select {
	case <-ended:
	case <-time.After(unlistenLimit):
	}
	return nil
}

// announce handles a channel that boxd opens.
func (l *link) announce(conn *sshconn.Conn, ch ssh.NewChannel) {
	var who wire.Accept
	known := ch.ChannelType() == wire.AcceptChannel && json.Unmarshal(ch.ExtraData(), &who) == nil
	l.mu.Lock()
	to := l.listeners[who.ID]
	l.mu.Unlock()
	if !known || to == nil {
		conn.Reject(ch, ssh.ConnectionFailed, "the client has no such listener")
		return
	}
	origin := sshconn.Address("unix", "")
	switch {
	case who.To != "":
		origin = hostapi.Leaving{To: who.To, Process: who.Process,
			Program: shown(who.Program), Session: shown(who.Session)}
	case who.Origin != "":
		origin = sshconn.Address("tcp", who.Origin)
	}
	to.Announce(conn, ch, origin)
}

// shownMax is more than the kernel keeps of a program's name, in bytes, and than ids have.
const shownMax = 64

// shown returns what the box calls something, safe to show in a line.
func shown(name string) string {
	words := strings.Fields(name[:min(len(name), shownMax)])
	return printable.Text(strings.Join(words, " "))
}

// endListeners ends all listeners, because there will be no connection.
func (l *link) endListeners(why error) {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.listeners))
	l.mu.Unlock()
	for _, listener := range all {
		listener.End(why)
	}
}
