package sshbox

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/faulttest"
)

// An engineProxy passes a program's connections on to the engine, and can cut them.
type engineProxy struct {
	*faulttest.Wire
	path string
}

// newEngineProxy starts a proxy, which it closes when the test ends.
func newEngineProxy(t testing.TB) *engineProxy {
	t.Helper()
	d := testEngine(t)
	engine, ok := strings.CutPrefix(d.DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine at %s is not reached through a socket", d.DaemonHost())
	}
	path := filepath.Join(t.TempDir(), "engine")
	w, err := faulttest.NewWire("unix", path, "unix", engine, faulttest.Upgrade)
	noError(t, err)
	t.Cleanup(w.Close)
	return &engineProxy{w, path}
}

// box makes a box whose connections go through the proxy.
func (proxy *engineProxy) box(t testing.TB, change func(*Config)) *DockerSSHBox {
	t.Helper()
	d, err := client.New(client.WithHost("unix://" + proxy.path))
	noError(t, err)
	t.Cleanup(func() { d.Close() })
	config := Config{Image: testImage, Network: "none", Docker: d}
	if change != nil {
		change(&config)
	}
	// Plugins may have to be set up first, which takes minutes.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
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
