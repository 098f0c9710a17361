// Package e2btest starts a server of E2B's API for tests: package service/e2b, whose boxes are
// containers of this machine's engine.
package e2btest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/service"
	gateway "github.com/sandshell/sandshell/service/e2b"
	"github.com/sandshell/sandshell/sshbox"
)

// Key is the API key of a Gateway, and OtherKey one of another owner.
const (
	Key      = "e2b_0123456789"
	OtherKey = "e2b_9876543210"
)

// A Gateway serves E2B's API. Its specs are "base", of the test image, and "small", of busybox,
// both without a network, and "exit", which may reach names below example.com.
type Gateway struct {
	URL     string
	Service *service.Service
	Control *e2b.Control
	Handler http.Handler
}

var names atomic.Int64

// Start starts a Gateway, which ends with the test. Its boxes are removed then. change changes the
// Config of its handler.
func Start(t testing.TB, change func(*gateway.Config)) *Gateway {
	t.Helper()
	name := fmt.Sprintf("e%dx%d", os.Getpid(), names.Add(1))
	engine := dockertest.Engine(t, "sandshell-test", dockertest.Busybox)
	t.Cleanup(func() { removeAll(t, engine, name) })
	specs, err := service.NewSpecs(
		&service.Spec{ID: "base", Config: sshbox.Config{Image: "sandshell-test", Network: "none",
			CPUs: 2, Memory: 1 << 30}},
		&service.Spec{ID: "small", Config: sshbox.Config{Image: dockertest.Busybox,
			Network: "none"}},
		&service.Spec{ID: "exit", Config: sshbox.Config{Image: "sandshell-test"},
			Egress: []string{"https://*.example.com"}})
	require.NoError(t, err)
	s, err := service.New(service.Config{Name: name, Specs: specs, Logger: testenv.Logger(t),
		Secret: []byte(strings.Repeat("s", 32)), Every: time.Hour})
	require.NoError(t, err)
	c := gateway.Config{Service: s, Logger: testenv.Logger(t),
		Keys: func(key string) (string, bool) { return key, key == Key || key == OtherKey }}
	if change != nil {
		change(&c)
	}
	handler := gateway.Handler(c)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		server.CloseClientConnections()
		server.Close()
	})
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(client.CloseIdleConnections)
	return &Gateway{URL: server.URL, Service: s, Handler: handler,
		Control: &e2b.Control{HTTP: client, Base: server.URL, Key: Key}}
}

// removeAll removes the boxes of a service, with their notes.
func removeAll(t testing.TB, engine *client.Client, name string) {
	ctx := context.Background()
	of := client.Filters{}.Add("label", docker.ServiceLabel+"="+name)
	list, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: of})
	require.NoError(t, err)
	for _, c := range list.Items {
		_, err := engine.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true,
			RemoveVolumes: true})
		require.True(t, err == nil || errdefs.IsConflict(err) || errdefs.IsNotFound(err), "%v", err)
	}
	volumes, err := engine.VolumeList(ctx, client.VolumeListOptions{Filters: of})
	require.NoError(t, err)
	for _, v := range volumes.Items {
		_, err := engine.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true})
		require.NoError(t, err)
	}
}

// Client returns a client of the data plane of a sandbox.
func (g *Gateway) Client(s *e2b.Sandbox) *e2b.Client {
	return &e2b.Client{HTTP: g.Control.HTTP, Base: g.URL, Token: s.EnvdAccessToken,
		Header: http.Header{"E2b-Sandbox-Id": {s.SandboxID}, "E2b-Sandbox-Port": {"49983"}}}
}

// New makes a sandbox of a template.
func (g *Gateway) New(t testing.TB, n e2b.NewSandbox) *e2b.Sandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := g.Control.Create(ctx, n)
	require.NoError(t, err)
	return s
}

// RemoveImage removes an image that a snapshot has made.
func (g *Gateway) RemoveImage(t testing.TB, name string) {
	dockertest.RemoveImage(t, dockertest.Engine(t), name)
}
