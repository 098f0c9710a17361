// Package boxtest makes boxes with plugins, for the plugins' tests.
package boxtest

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// A Box is a LocalBox, an SSHBox or a DockerSSHBox.
type Box interface {
	sandbox.Sandbox
	plugin.Installer
}

// Each runs test in a LocalBox and in a container, both with the plugins, at the same time.
func Each(t *testing.T, test func(t *testing.T, b Box), plugins ...plugin.Plugin) {
	t.Run("LocalBox", func(t *testing.T) {
		t.Parallel()
		test(t, Local(t, plugins...))
	})
	t.Run("DockerSSHBox", func(t *testing.T) {
		t.Parallel()
		testenv.NeedsAll(t, "a container runs the same scripts as this machine")
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

// Container makes a container with the plugins, of the test image unless c says otherwise, and
// closes it when the test ends. The image with the plugins stays on the engine for the next test.
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

// SSH makes an SSHBox over an sshd of this machine, with a home directory of its own, and closes it
// when the test ends. Plugins are installed on this machine, so they must write nothing outside of
// that home directory.
func SSH(t testing.TB, plugins ...plugin.Plugin) *sshbox.SSHBox {
	t.Helper()
	s := sshdtest.Start(t)
	b, err := sshbox.Dial(t.Context(), sshbox.DialConfig{
		Address: s.Address, User: s.User, Signer: s.Key, HostKey: ssh.FixedHostKey(s.HostKey),
		Env:  []string{"HOME=" + t.TempDir()},
		Boxd: sshbox.NoBoxd,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	require.NoError(t, b.InitPlugins(t.Context(), plugins...))
	return b
}
