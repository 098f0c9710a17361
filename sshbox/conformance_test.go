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
	for _, user := range []string{"root", "user"} {
		t.Run(user, func(t *testing.T) {
			sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				box, err := New(ctx, Config{Image: testImage, User: user, Network: "none", AllowNewPrivileges: user != "root"})
				noError(t, err)
				t.Cleanup(func() { box.Close() })
				return box
			})
		})
	}
}
