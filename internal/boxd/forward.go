//go:build linux

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/programs"
	"golang.org/x/crypto/ssh"
)

// Forwards are the addresses on which boxd listens for one client's connection. The zero value has
// none.
type forwards struct {
	mu        sync.Mutex
	closed    bool
	listeners map[forwardKey][]net.Listener
}

// A forwardKey is an address as the client has written it. The client cancels with the same words,
// and boxd announces connections with them.
type forwardKey struct {
	network, address string // network: tcp or unix
	port             uint32
}

var errForwarded = errors.New("this connection listens there already")

// add adds the listeners of an address. If it returns an error, the caller must close them.
func (f *forwards) add(key forwardKey, listeners []net.Listener) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return net.ErrClosed
	case f.listeners[key] != nil:
		return errForwarded
	case len(f.listeners) >= maxListeners:
		return errTooMany
	}
	if f.listeners == nil {
		f.listeners = map[forwardKey][]net.Listener{}
	}
	f.listeners[key] = listeners
	return nil
}

func (f *forwards) cancel(key forwardKey) bool {
	f.mu.Lock()
	listeners := f.listeners[key]
	delete(f.listeners, key)
	f.mu.Unlock()
	closeListeners(listeners)
	return listeners != nil
}

// close closes all listeners. Connections that were accepted end with their channels.
func (f *forwards) close() {
	f.mu.Lock()
	all := f.listeners
	f.listeners, f.closed = nil, true
	f.mu.Unlock()
	for _, listeners := range all {
		closeListeners(listeners)
	}
}

func closeListeners(listeners []net.Listener) {
	for _, l := range listeners {
		programs.Listener{Listener: l}.Close()
	}
}

// forward answers the four global requests that begin and end listening.
func (c *conn) forward(r *ssh.Request) (ok bool, reply []byte) {
	key := forwardKey{network: "tcp"}
	if strings.Contains(r.Type, "streamlocal") {
		var socket struct{ Path string }
		if ssh.Unmarshal(r.Payload, &socket) != nil {
			return false, nil
		}
		key = forwardKey{network: "unix", address: socket.Path}
	} else {
		var tcp struct {
			Address string
			Port    uint32
		}
		if ssh.Unmarshal(r.Payload, &tcp) != nil || tcp.Port > 65535 {
			return false, nil
		}
		key.address, key.port = tcp.Address, tcp.Port
	}
	if strings.HasPrefix(r.Type, "cancel-") {
		return c.forwards.cancel(key), nil
	}
	return c.listen(r, key)
}

func (c *conn) listen(r *ssh.Request, key forwardKey) (ok bool, reply []byte) {
	var listeners []net.Listener
	var err error
	chosen := key.network == "tcp" && key.port == 0
	if key.network == "unix" {
		listeners, err = c.listenUnix(key.address)
	} else {
		listeners, err = listenTCP(key.address, int(key.port))
		if chosen && err == nil {
			key.port = uint32(listeners[0].Addr().(*net.TCPAddr).Port)
		}
	}
	if err == nil {
		if err = c.forwards.add(key, listeners); err != nil {
			closeListeners(listeners)
		}
	}
	if err != nil {
		c.s.log.Info("not listening", "error", err)
		return false, nil
	}
	if chosen {
		reply = ssh.Marshal(&struct{ Port uint32 }{key.port})
	}
	// Reply before a connection is announced: the client does not know the port before the reply.
	if r.WantReply {
		r.Reply(true, reply)
		r.WantReply = false
	}
	for _, l := range listeners {
		go c.accept(l, key)
	}
	return true, nil
}

// listenTCP listens on the addresses that RFC 4254, section 7.1, gives these names: "" means all,
// "localhost" both loopback addresses. A machine may have only one of the two.
func listenTCP(address string, port int) ([]net.Listener, error) {
	if address != "localhost" {
		if address == "*" {
			address = ""
		}
		l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		return []net.Listener{l}, err
	}
	var listeners []net.Listener
	var first error
	for _, loopback := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) && port != 0 && len(listeners) == 0 {
			return nil, err // another program would have the other half of localhost
		}
		if err != nil {
			first = errors.Join(first, err)
			continue
		}
		listeners, port = append(listeners, l), l.Addr().(*net.TCPAddr).Port
	}
	if len(listeners) == 0 {
		return nil, first
	}
	return listeners, nil
}

func (c *conn) listenUnix(path string) ([]net.Listener, error) {
	path, err := c.socketPath(path)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	os.Chmod(path, 0o600) // as sshd does
	return []net.Listener{l}, nil
}

// socketPath returns the absolute path of a socket. (Package net would take a relative one that
// begins with "@" for the name of an abstract socket.)
func (c *conn) socketPath(path string) (string, error) {
	if path == "" || strings.Contains(path, "\x00") {
		return "", syscall.EINVAL
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.s.startDir(), path)
	}
	return path, nil
}

// accept announces each connection to the client.
func (c *conn) accept(l net.Listener, key forwardKey) {
	for {
		accepted, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, for example
			c.s.log.Warn("accept", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !c.countChannel() {
			accepted.Close()
			continue
		}
		go func() {
			defer c.channels.Add(-1)
			c.announce(accepted.(halfCloser), key)
		}()
	}
}

func (c *conn) announce(accepted halfCloser, key forwardKey) {
	defer accepted.Close()
	kind := "forwarded-streamlocal@openssh.com"
	extra := ssh.Marshal(&struct{ Path, Reserved string }{key.address, ""})
	if key.network == "tcp" {
		kind = "forwarded-tcpip"
		origin := accepted.RemoteAddr().(*net.TCPAddr)
		extra = ssh.Marshal(&struct {
			Address    string
			Port       uint32
			Origin     string
			OriginPort uint32
		}{key.address, key.port, origin.IP.String(), uint32(origin.Port)})
	}
	ch, requests, err := c.OpenChannel(kind, extra)
	if err != nil {
		return // the client refuses it
	}
	relay(ch, requests, accepted, c)
}
