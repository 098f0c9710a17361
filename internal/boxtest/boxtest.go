// Package boxtest makes boxes for the tests of what is installed in them.
package boxtest

import (
	"testing"

	"github.com/sandshell/sandshell/internal/dockertest"
	"github.com/sandshell/sandshell/internal/sshdtest"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// A Box is any of ours.
type Box interface {
	sandbox.Sandbox
	plugin.Installer
}

// Each runs test side by side in a LocalBox and in a container, which have the plugins.
func Each(t *testing.T, test func(t *testing.T, b Box), plugins ...plugin.Plugin) {
	t.Run("LocalBox", func(t *testing.T) {
		t.Parallel()
		test(t, Local(t, plugins...))
	})
	t.Run("DockerSSHBox", func(t *testing.T) {
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
		c.Image = dockertest.Image
	}
	dockertest.Engine(t, c.Image)
	c.Plugins = plugins
	b, err := sshbox.New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// SSH makes an SSHBox over an sshd of this machine, with a home directory of its own, and closes it when the test ends. What is installed there
// is installed on this machine: nothing outside of the home directory may be.
func SSH(t testing.TB, plugins ...plugin.Plugin) *sshbox.SSHBox {
	t.Helper()
	s := sshdtest.Start(t)
	b, err := sshbox.Dial(t.Context(), sshbox.DialConfig{
		Address: s.Address, User: s.User, Signer: s.Key, HostKey: ssh.FixedHostKey(s.HostKey), Env: []string{"HOME=" + t.TempDir()},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	require.NoError(t, b.InitPlugins(t.Context(), plugins...))
	return b
}
