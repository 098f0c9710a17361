//go:build linux

package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"testing"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"golang.org/x/crypto/ssh"
)

// testImage is an image that "make image" makes.
const testImage = "sandshell-test:latest"

// containers has a container with an sshd on its standard streams, and a plain connection to it.
type containers struct {
	login
	engine *client.Client
	client *ssh.Client
}

// engine returns a client of the engine. It skips the benchmark if there is no engine.
func engine(t testing.TB) *client.Client {
	t.Helper()
	fail := t.Skipf
	if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
		fail = t.Fatalf
	}
	e, err := client.New(client.FromEnv)
	noError(t, err)
	t.Cleanup(func() { e.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	if _, err := e.ImageInspect(ctx, testImage); err != nil {
		fail("no engine, or no image %s (make image): %v", testImage, err)
	}
	return e
}

// create creates a container. The returned function removes it.
func create(ctx context.Context, e *client.Client,
	args ...string) (id string, remove func(), err error) {
	yes := true
	created, err := e.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: testImage, User: "0:0", Entrypoint: args,
			Labels:    map[string]string{"sandshell": "bench"},
			OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true,
			AttachStderr: true,
		},
		HostConfig: &container.HostConfig{Init: &yes, NetworkMode: "none",
			LogConfig: container.LogConfig{Type: "none"}},
	})
	return created.ID, func() {
		e.ContainerRemove(context.Background(), created.ID,
			client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	}, err
}

// startContainer starts a container and logs in to it. It is removed at the end of the benchmark.
func startContainer(t testing.TB) *containers {
	t.Helper()
	c := &containers{engine: engine(t)}
	var hostKey, authorized string
	c.login, hostKey, authorized = newLogin(t, "root")
	id, remove, err := create(t.Context(), c.engine, "sh", "-c", `umask 077; mkdir -p /run/sshd /run/bench; cd /run/bench; printf %s "$1" >hostkey; printf %s "$2" >keys
		printf '%s\n' 'HostKey /run/bench/hostkey' 'AuthorizedKeysFile /run/bench/keys' 'StrictModes no' 'UsePAM no' 'PrintLastLog no' 'SetEnv SHLVL=1' >config
		exec /usr/sbin/sshd -i -f /run/bench/config`, "sh", hostKey, authorized)
	noError(t, err)
	t.Cleanup(remove)
	attached, err := c.engine.ContainerAttach(t.Context(), id,
		client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	noError(t, err)
	_, err = c.engine.ContainerStart(t.Context(), id, client.ContainerStartOptions{})
	noError(t, err)
	c.client, err = c.handshake(&streams{Conn: attached.Conn,
		r: bufio.NewReaderSize(attached.Reader, 64<<10)})
	noError(t, err)
	t.Cleanup(func() { c.client.Close() })
	return c
}

func (c *containers) terminal() (stream, error) { return sshTerminal(c.client) }

func (c *containers) run(script string, stdin io.Reader, stdout io.Writer) error {
	return sshRun(c.client, script, stdin, stdout)
}

// streams are a container's standard streams. The engine sends output in frames: see package
// stdcopy.
type streams struct {
	net.Conn
	r    *bufio.Reader
	left int // bytes left of the current frame of standard output
}

func (s *streams) Read(p []byte) (int, error) {
	for s.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(s.r, header[:]); err != nil {
			return 0, err
		}
		s.left = int(binary.BigEndian.Uint32(header[4:]))
		if stdcopy.StdType(header[0]) != stdcopy.Stdout {
			if _, err := s.r.Discard(s.left); err != nil {
				return 0, err
			}
			s.left = 0
		}
	}
	n, err := s.r.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}
