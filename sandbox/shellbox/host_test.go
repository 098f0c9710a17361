//go:build linux

package shellbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The example's Host passes the conformance suite. It implements neither Processes nor Copier: so
// this also is a test of control.sh and of copying with tar.
func TestHostOfOnesOwn(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "SSHBox runs every day, which is asked and copied by the same scripts")
	// These are the groups that depend on the Host. Files by a shell take minutes of a processor:
	// the tests of shfiles and sshhost's TestNoSubsystem have them every day.
	groups := sandboxtest.Groups("Output", "ShellEnd", "Interaction", "Time", "Background", "Run",
		"Network", "Life")
	if testenv.Full() {
		groups = sandboxtest.Groups()
	}
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		// t.Context() has ended in a Cleanup
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
		defer cancel()
		box, err := shellbox.New(ctx, chamber{by: []string{"/usr/bin/nice"}},
			shellbox.Options{Dir: t.TempDir(), Shell: []string{"bash"},
				Logger: testenv.Logger(t)})
		require.NoError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(sandboxtest.PlainSSHD(), groups)...)
}
