//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// dialLimit bounds a connection that boxd makes for a client.
const dialLimit = 20 * time.Second

// directTCP connects to an address.
func (c *conn) directTCP(newChannel ssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if ssh.Unmarshal(newChannel.ExtraData(), &to) != nil || to.Port > 65535 {
		newChannel.Reject(ssh.ConnectionFailed, "Invalid argument")
		return
	}
	c.connect(newChannel, func(ctx context.Context) (net.Conn, error) {
		return dialTCP(ctx, to.Host, to.Port)
	})
}

// directUnix connects to a socket.
func (c *conn) directUnix(newChannel ssh.NewChannel) {
	var to struct { // OpenSSH's PROTOCOL, section 2.4
		Path     string
		Reserved string
		Port     uint32
	}
	if ssh.Unmarshal(newChannel.ExtraData(), &to) != nil {
		newChannel.Reject(ssh.ConnectionFailed, "Invalid argument")
		return
	}
	c.connect(newChannel, func(ctx context.Context) (net.Conn, error) {
		path, err := c.socketPath(to.Path)
		if err != nil {
			return nil, err
		}
		return dialUnix(ctx, path)
	})
}

// connect makes a connection with dial, and serves the channel to its end.
func (c *conn) connect(newChannel ssh.NewChannel, dial func(context.Context) (net.Conn, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	dialed, err := dial(ctx)
	cancel()
	if err != nil {
		newChannel.Reject(ssh.ConnectionFailed, reason(err))
		return
	}
	defer dialed.Close()
	ch, requests, err := newChannel.Accept()
	if err != nil {
		return
	}
	relay(ch, requests, dialed.(halfCloser), c)
}

func dialTCP(ctx context.Context, host string, port uint32) (net.Conn, error) {
	// Go's own resolver needs no C library, and none of the files that many images lack. But it
	// knows "localhost" only from /etc/hosts, which is one of these files.
	dialer := net.Dialer{Resolver: &net.Resolver{PreferGo: true}}
	address := func(host string) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
	if host != "" && !strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return dialer.DialContext(ctx, "tcp", address(host))
	}
	conn, err := dialer.DialContext(ctx, "tcp", address("127.0.0.1"))
	if err != nil {
		if conn, err := dialer.DialContext(ctx, "tcp", address("::1")); err == nil {
			return conn, nil
		}
	}
	return conn, err
}

func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select { // the socket's queue is full, and a non-blocking connect does not wait for room
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reason says why a connection failed in the words of the C library, as sshd does. The client
// parses these words.
func reason(err error) string {
	var errno syscall.Errno
	var name *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "Name or service not known: " + name.Name
	case errors.As(err, &name):
		return "Temporary failure in name resolution: " + name.Name
	case errors.As(err, &errno):
		text := errno.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	case errors.As(err, &timeout) && timeout.Timeout():
		return "Connection timed out"
	}
	return err.Error()
}
