// Package boxtest makes boxes for the tests of what is installed in them.
package boxtest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// Image is the test image, Debian with bash and python3: make image.
const Image = "sandshell-test"

// A Box is any of ours.
type Box interface {
	sandbox.Sandbox
	InitPlugins(ctx context.Context, plugins ...plugin.Plugin) error
}

// Each runs test side by side in a LocalBox and in a container, which have the plugins.
func Each(t *testing.T, test func(t *testing.T, b Box), plugins ...plugin.Plugin) {
	t.Run("LocalBox", func(t *testing.T) {
		t.Parallel()
		test(t, Local(t, plugins...))
	})
	t.Run("boxd", func(t *testing.T) {
		t.Parallel()
		test(t, Container(t, sshbox.Config{}, plugins...))
	})
}

// Local makes a LocalBox with the plugins, and closes it when the test ends.
func Local(t testing.TB, plugins ...plugin.Plugin) *localbox.LocalBox {
	t.Helper()
	b, err := localbox.New(t.Context(), localbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	require.NoError(t, b.InitPlugins(t.Context(), plugins...))
	return b
}

// Container makes a container with the plugins, of the test image unless c says otherwise, and closes it when the test ends. The image with the
// plugins stays on the engine for the next.
func Container(t testing.TB, c sshbox.Config, plugins ...plugin.Plugin) *sshbox.DockerSSHBox {
	t.Helper()
	if c.Image == "" {
		c.Image = Image
	}
	NeedDocker(t, c.Image)
	c.Plugins = plugins
	b, err := sshbox.New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// NeedDocker returns a client of the engine, and skips the test where there is no engine or no such image. With SANDSHELL_REQUIRE_DOCKER=1 it
// fails then.
func NeedDocker(t testing.TB, images ...string) *client.Client {
	t.Helper()
	fail := t.Skipf
	if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
		fail = t.Fatalf
	}
	engine, err := client.New(client.FromEnv)
	require.NoError(t, err)
	t.Cleanup(func() { engine.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, image := range images {
		if _, err := engine.ImageInspect(ctx, image); err != nil {
			fail("no engine, or no image %s (make image): %v", image, err)
		}
	}
	return engine
}
