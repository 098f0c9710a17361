//go:build linux

package comparison

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dockerExec starts a docker exec for each command, as many agents do.
type dockerExec struct {
	container string
	cutAll    func()
}

func startDockerExec(t *testing.T, image string) way {
	cutAll := engineProxy(t)
	return &dockerExec{startContainer(t, image), cutAll}
}

// startContainer starts a container without a network.
func startContainer(t *testing.T, image string) string {
	id := docker(t, "run", "-d", "--init", "--network", "none", "--label", "sandshell=comparison",
		"--entrypoint", "sh", image, "-c", "while :; do sleep 1000; done")
	t.Cleanup(func() { docker(t, "rm", "-f", id) })
	return id
}

// docker runs the docker command, and returns its output.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	require.NoError(t, err, "docker %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func (d *dockerExec) command(ctx context.Context, command string) *exec.Cmd {
	c := exec.CommandContext(ctx, "docker", "exec", d.container, "sh", "-c",
		"command -v bash >/dev/null && exec bash -c \"$1\"; exec sh -c \"$1\"", "sh", command)
	c.WaitDelay = time.Second
	return c
}

func (d *dockerExec) run(t *testing.T, command string, limit time.Duration) reply {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out bytes.Buffer
	c := d.command(ctx, command)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	r := reply{output: out.String(), state: ended, took: time.Since(begin)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.state, r.status = working, -1
	case errors.As(err, &exit):
		r.status = exit.ExitCode()
	default:
		require.NoError(t, err)
	}
	return r
}

func (d *dockerExec) answer(t *testing.T, _ string, _ time.Duration) reply {
	t.Fatal("no command asks: its input is empty")
	return reply{}
}

func (d *dockerExec) cut(after time.Duration) { time.AfterFunc(after, d.cutAll) }

// forgery has nothing to forge: the status is the engine's.
func (d *dockerExec) forgery() string { return "sleep 1; exit 7" }

func (d *dockerExec) flood(t *testing.T, command string) int64 {
	n := &counter{}
	c := d.command(t.Context(), command)
	c.Stdout = n
	require.NoError(t, c.Run())
	return n.n
}

func (d *dockerExec) fork(t *testing.T) way {
	return &dockerExec{container: startContainer(t, commit(t, d.container))}
}

// commit makes an image of a container.
func commit(t *testing.T, container string) string {
	image := docker(t, "commit", container)
	t.Cleanup(func() { docker(t, "rmi", "-f", image) })
	return image
}

// A counter counts what is written.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// engineProxy puts a proxy before the engine, for all that the test starts then. The function cuts
// all of its connections once.
func engineProxy(t *testing.T) (cutAll func()) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	var mu sync.Mutex
	var all []net.Conn
	copied := func(dst, src net.Conn) {
		io.Copy(dst, src)
		dst.(*net.UnixConn).CloseWrite()
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("unix", "/var/run/docker.sock")
			if err != nil {
				c.Close()
				continue
			}
			mu.Lock()
			all = append(all, c, up)
			mu.Unlock()
			go copied(up, c)
			go copied(c, up)
		}
	}()
	cutAll = func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range all {
			c.Close()
		}
		all = nil
	}
	t.Cleanup(cutAll)
	return cutAll
}
