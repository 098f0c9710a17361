//go:build linux

package bench

import (
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"

	"github.com/sandshell/sandshell/sshbox"
)

// BenchmarkReconnect executes a command right after the connection to the box was cut. The floor is
// one docker exec, which a new connection needs.
func BenchmarkReconnect(b *testing.B) {
	b.Run("docker", func(b *testing.B) {
		cable := newCable(b, engine(b))
		config := sshbox.Config{Image: testImage, Network: "none", Docker: cable.engine}
		box, err := sshbox.New(b.Context(), config)
		noError(b, err)
		b.Cleanup(func() { box.Close() })
		execute(b, box, "x=0")
		n := 0
		comparison{
			floor: func() { execOnce(b, cable.engine, box.ContainerID()) },
			ours: func() {
				cable.cut()
				n++
				if r := execute(b, box, "echo $((x += 1))"); r.Restarted ||
					strings.TrimSpace(r.Output) != strconv.Itoa(n) {
					b.Fatalf("cut %d: %+v", n, r)
				}
			},
			rounds: 20,
		}.run(b)
	})
}

// execOnce runs echo by docker exec.
func execOnce(t testing.TB, e *client.Client, id string) {
	t.Helper()
	exec, err := e.ExecCreate(t.Context(), id, client.ExecCreateOptions{AttachStdout: true,
		Cmd: []string{"sh", "-c", "echo ready"}})
	noError(t, err)
	attached, err := e.ExecAttach(t.Context(), exec.ID, client.ExecAttachOptions{})
	noError(t, err)
	defer attached.Close()
	if _, err := io.Copy(io.Discard, attached.Reader); err != nil {
		t.Fatal(err)
	}
}

// A cable forwards connections to the engine. It can be cut.
type cable struct {
	engine *client.Client // uses the cable
	mu     sync.Mutex
	conns  map[net.Conn]bool
}

func newCable(t testing.TB, e *client.Client) *cable {
	t.Helper()
	socket, ok := strings.CutPrefix(e.DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine at %s is not reached through a socket", e.DaemonHost())
	}
	c := &cable{conns: map[net.Conn]bool{}}
	path := filepath.Join(t.TempDir(), "engine")
	l, err := net.Listen("unix", path)
	noError(t, err)
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("unix", socket)
			if err != nil {
				a.Close()
				continue
			}
			c.mu.Lock()
			c.conns[a], c.conns[b] = true, true
			c.mu.Unlock()
			for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
				go func() {
					io.Copy(way[0], way[1])
					way[0].(*net.UnixConn).CloseWrite()
				}()
			}
		}
	}()
	t.Cleanup(func() {
		l.Close()
		c.cut()
	})
	c.engine, err = client.New(client.WithHost("unix://" + path))
	noError(t, err)
	t.Cleanup(func() { c.engine.Close() })
	return c
}

// cut cuts all connections.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.Close()
	}
	clear(c.conns)
}
