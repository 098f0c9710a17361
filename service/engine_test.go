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

// A cable is the way to the engine, which can break.
type cable struct {
	docker *client.Client

	mu     sync.Mutex
	broken bool
	conns  map[net.Conn]struct{}
}

var errCable = errors.New("the cable to the engine is broken")

func newCable(t *testing.T) *cable {
	t.Helper()
	network, address, ok := strings.Cut(dockertest.Engine(t, dockertest.Busybox).DaemonHost(),
		"://")
	require.True(t, ok)
	c := &cable{conns: map[net.Conn]struct{}{}}
	var err error
	c.docker, err = client.New(client.FromEnv, client.WithDialContext(
		func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.broken {
				conn.Close()
				return nil, errCable
			}
			c.conns[conn] = struct{}{}
			return &strand{conn, c}, nil
		}))
	require.NoError(t, err)
	t.Cleanup(func() { c.docker.Close() })
	return c
}

// cut ends all connections, and there are no new ones until mend.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
	for conn := range c.conns {
		conn.Close()
	}
	clear(c.conns)
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = false
}

// A strand is a connection.
type strand struct {
	net.Conn
	cable *cable
}

func (s *strand) Close() error {
	s.cable.mu.Lock()
	delete(s.cable.conns, s.Conn)
	s.cable.mu.Unlock()
	return s.Conn.Close()
}

func (s *strand) CloseWrite() error { return s.Conn.(interface{ CloseWrite() error }).CloseWrite() }
