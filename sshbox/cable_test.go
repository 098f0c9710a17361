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

// A cable is the way to the engine, for a program whose connections are to be cut.
type cable struct {
	*faulttest.Wire
	path string
}

func newCable(t testing.TB) *cable {
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
	return &cable{w, path}
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
	// plugins may have to be set up first
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
