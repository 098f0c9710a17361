package sshbox

import (
	"context"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

func TestConformanceSSHBox(t *testing.T) {
	s := startSSHD(t, "MaxStartups 100")
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // not t's: the suite makes boxes in Cleanups, too
		defer cancel()
		box, err := Dial(ctx, s.config())
		noError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	})
}

func TestConformanceDockerSSHBox(t *testing.T) {
	docker(t)
	for name, config := range map[string]Config{
		"boxd":      {Image: testImage},
		"boxd-bare": {Image: bareImage, User: "12345:54321", ReadOnlyRoot: true, CapDrop: []string{"ALL"}},
	} {
		t.Run(name, func(t *testing.T) {
			config.Network = "none"
			sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				box, err := New(ctx, config)
				noError(t, err)
				t.Cleanup(func() { box.Close() })
				return box
			})
		})
	}
}

// bareImage has busybox, and nothing else: no bash, no tar, no /etc/passwd.
const bareImage = "sandshell-busybox:latest"
