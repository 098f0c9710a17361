package zztmp

import (
	"context"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/sshdtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

func conform(t *testing.T, open func(context.Context) (sandbox.Sandbox, error), opts ...sandboxtest.Option) {
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		box, err := open(ctx)
		require.NoError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	}, opts...)
}

func TestDocker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]sshbox.Config{
		"root": {Image: "sandshell-test:latest"},
		"bare": {Image: "sandshell-busybox:latest", User: "12345:54321", ReadOnlyRoot: true, CapDrop: []string{"ALL"}},
		"user": {Image: "sandshell-test:latest", User: "user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Network = "none"
			conform(t, func(ctx context.Context) (sandbox.Sandbox, error) { return sshbox.New(ctx, c) }, sandboxtest.Groups("Network", "Life"))
		})
	}
}

func TestSSH(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, "MaxStartups 100")
	_ = s
}
