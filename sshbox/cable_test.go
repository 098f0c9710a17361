package sshbox

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// A cable is the way to the engine, for a program whose connections are to be cut.
type cable struct {
	path   string
	l      net.Listener
	engine string

	mu    sync.Mutex
	conns map[net.Conn]bool
	dead  bool // new ones are cut too
	wg    sync.WaitGroup
}

func newCable(t testing.TB) *cable {
	t.Helper()
	d := docker(t)
	engine, ok := strings.CutPrefix(d.DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine at %s is not reached through a socket", d.DaemonHost())
	}
	c := &cable{path: filepath.Join(t.TempDir(), "engine"), engine: engine, conns: map[net.Conn]bool{}}
	var err error
	c.l, err = net.Listen("unix", c.path)
	noError(t, err)
	c.wg.Go(c.serve)
	t.Cleanup(func() {
		c.l.Close()
		c.cut()
		c.wg.Wait()
	})
	return c
}

func (c *cable) serve() {
	for {
		a, err := c.l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("unix", c.engine)
		c.mu.Lock()
		if err != nil || c.dead {
			c.mu.Unlock()
			a.Close()
			if b != nil {
				b.Close()
			}
			continue
		}
		c.conns[a], c.conns[b] = true, true
		c.mu.Unlock()
		for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
			c.wg.Go(func() {
				io.Copy(way[0], way[1])
				way[0].(*net.UnixConn).CloseWrite()
			})
		}
	}
}

// cut cuts all connections that there are.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.Close()
	}
	clear(c.conns)
}

// unplug has new connections cut too, or no longer.
func (c *cable) unplug(dead bool) {
	c.mu.Lock()
	c.dead = dead
	c.mu.Unlock()
	if dead {
		c.cut()
	}
}

// box makes a box at the end of the cable.
func (c *cable) box(t testing.TB, change func(*Config)) *DockerSSHBox {
	t.Helper()
	d, err := client.New(client.WithHost("unix://" + c.path))
	noError(t, err)
	t.Cleanup(func() { d.Close() })
	config := Config{Image: testImage, Network: "none", Docker: d}
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // plugins may have to be set up first
	defer cancel()
	box, err := New(ctx, config)
	noError(t, err)
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return box
}
