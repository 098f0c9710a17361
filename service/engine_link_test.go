package service

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// An engineLink is a client of the engine whose connections a test can cut.
type engineLink struct {
	docker *client.Client

	mu     sync.Mutex
	broken bool
	conns  map[net.Conn]struct{}
}

var errLink = errors.New("the link to the engine is cut")

func newEngineLink(t *testing.T) *engineLink {
	t.Helper()
	network, address, ok := strings.Cut(dockertest.Engine(t, dockertest.Busybox).DaemonHost(),
		"://")
	require.True(t, ok)
	l := &engineLink{conns: map[net.Conn]struct{}{}}
	var err error
	l.docker, err = client.New(client.FromEnv, client.WithDialContext(
		func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.broken {
				conn.Close()
				return nil, errLink
			}
			l.conns[conn] = struct{}{}
			return &linkConn{conn, l}, nil
		}))
	require.NoError(t, err)
	t.Cleanup(func() { l.docker.Close() })
	return l
}

// cut closes all connections. There are no new ones until mend is called.
func (l *engineLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	for conn := range l.conns {
		conn.Close()
	}
	clear(l.conns)
}

func (l *engineLink) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = false
}

// A linkConn is a connection of an engineLink.
type linkConn struct {
	net.Conn
	link *engineLink
}

func (c *linkConn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c.Conn)
	c.link.mu.Unlock()
	return c.Conn.Close()
}

func (c *linkConn) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}
