package kubebox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd/api"
)

// A cable is a proxy to the API server that a test can cut.
type cable struct {
	listener net.Listener
	running  sync.WaitGroup
	mu       sync.Mutex
	ends     []net.Conn
}

func newCable(t *testing.T, to string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{listener: l}
	c.running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			c.mu.Lock()
			c.ends = append(c.ends, near, far)
			c.mu.Unlock()
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				c.running.Go(func() {
					io.Copy(way[0], way[1])
					way[0].Close()
					way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.cut()
		c.running.Wait()
	})
	return c
}

// cut closes all current connections.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.ends {
		end.Close()
	}
	c.ends = nil
}

// TestCut cuts the connection during commands and copies. No output is lost or doubled.
func TestCut(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var wire *cable
	c.Kubeconfig = kubeconfig(t, func(c *api.Cluster, _ *api.AuthInfo) {
		server, err := url.Parse(c.Server)
		require.NoError(t, err)
		wire = newCable(t, server.Host)
		if c.TLSServerName == "" {
			c.TLSServerName = server.Hostname()
		}
		server.Host = wire.listener.Addr().String()
		c.Server = server.String()
	})
	b := newBox(t, Config{Cluster: c})
	job, err := b.Background(t.Context(),
		`for i in $(seq 60); do echo $i; sleep 0.05; done; exit 7`)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "file")
	content := make([]byte, 20_000_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	require.NoError(t, os.WriteFile(file, content, 0o600))
	copied := make(chan error, 1)
	go func() { copied <- b.CopyTo(t.Context(), file, "/tmp/file") }()
	r, err := b.Execute(t.Context(), `X=1; for i in $(seq 60); do echo $i; sleep 0.05; done`,
		sandbox.Yield(100*time.Millisecond))
	require.NoError(t, err)
	var out strings.Builder
	out.WriteString(r.Output)
	for cuts := 0; r.State == sandbox.Running; cuts++ {
		if cuts < 3 {
			wire.cut()
		}
		r, err = b.Wait(t.Context(), sandbox.Yield(300*time.Millisecond))
		require.NoError(t, err)
		out.WriteString(r.Output)
	}
	var want strings.Builder
	for i := range 60 {
		fmt.Fprintln(&want, i+1)
	}
	require.Equal(t, want.String(), out.String())
	does(t, b, "echo $X", "1\n")
	r, err = job.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, want.String(), r.Output)
	require.Equal(t, 7, r.ExitCode)
	// A copy that was under way either succeeds or returns ErrCut.
	if err := <-copied; !errors.Is(err, sandbox.ErrCut) {
		require.NoError(t, err)
		does(t, b, "sha256sum </tmp/file", fmt.Sprintf("%x  -\n", sha256.Sum256(content)))
	}
}

// TestServerRestarted checks that the box goes on while the API server restarts.
func TestServerRestarted(t *testing.T) {
	t.Parallel()
	cluster(t) // skips where there is none
	k := kubetest.Start(t, 1, 50*time.Second)
	c := Cluster{Kubeconfig: k.Kubeconfig, Namespace: k.Namespace(t, kubetest.Restricted)}
	// on a busy machine an API server takes a while to start
	b := newBox(t, Config{Cluster: c, Linger: 3 * time.Minute})
	does(t, b, "X=1", "")
	_, err := b.Execute(t.Context(), `sleep 5; echo done`, sandbox.Yield(100*time.Millisecond))
	require.NoError(t, err)
	k.Order(t, "kill", "apiserver")
	k.Order(t, "start", "apiserver")
	r, err := b.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "done\n", r.Output)
	does(t, b, "echo $X", "1\n")
}
