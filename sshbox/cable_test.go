package sshbox

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	pairs []*pair
	wg    sync.WaitGroup

	passed atomic.Int64 // bytes, both ways
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
		p := new(pair)
		c.pairs = append(c.pairs, p)
		c.mu.Unlock()
		for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
			c.wg.Go(func() {
				io.Copy(io.MultiWriter(muted{way[0], p}, counter{&c.passed}), way[1])
				way[0].(*net.UnixConn).CloseWrite()
			})
		}
	}
}

// A counter counts the bytes written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// A pair is the two ends of a connection through the cable.
type pair struct {
	stream atomic.Bool // it has become the stream of an exec, after one request
	mute   atomic.Bool // what is sent goes nowhere
}

// A muted writer writes as long as its pair is not mute, and loses the rest.
type muted struct {
	io.Writer
	*pair
}

func (m muted) Write(p []byte) (int, error) {
	if m.mute.Load() {
		return len(p), nil
	}
	if bytes.Contains(p, []byte("\r\nUpgrade: tcp\r\n")) {
		m.stream.Store(true)
	}
	return m.Writer.Write(p)
}

// silence loses all that the streams of execs carry from now on, and leaves them open.
func (c *cable) silence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pairs {
		p.mute.Store(p.stream.Load())
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
