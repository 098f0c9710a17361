package agentskills_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs test in each kind of box, by default only in a LocalBox.
func each(t *testing.T, test func(t *testing.T, b boxtest.Box)) {
	t.Run("LocalBox", func(t *testing.T) {
		t.Parallel()
		test(t, boxtest.Local(t, agentskills.Plugin()))
	})
	t.Run("busybox", func(t *testing.T) {
		t.Parallel()
		testenv.NeedsAll(t, "the same commands run with this machine's programs every day")
		test(t, busybox(t))
	})
	t.Run("DockerSSHBox", func(t *testing.T) {
		t.Parallel()
		testenv.NeedsFull(t, "the same programs run on this machine, and TestTask there")
		test(t, boxtest.Container(t, sshbox.Config{}, agentskills.Plugin()))
	})
}

// kinds runs a long test with each implementation of the utilities: those of this machine, and
// busybox.
func kinds(t *testing.T, test func(t *testing.T, b boxtest.Box)) {
	testenv.NeedsAll(t, "it starts hundreds of programs: shorter tests of each command run every "+
		"day")
	t.Run("LocalBox", func(t *testing.T) {
		t.Parallel()
		test(t, boxtest.Local(t, agentskills.Plugin()))
	})
	t.Run("busybox", func(t *testing.T) {
		t.Parallel()
		test(t, busybox(t))
	})
}

// busybox returns a container that has boxd and busybox, with a user who is not root.
func busybox(t *testing.T) boxtest.Box {
	return boxtest.Container(t, sshbox.Config{Image: "sandshell-busybox", User: "12345:12345",
		Network: "none", Dir: "/tmp"}, agentskills.Plugin())
}

// enter makes a directory and changes to it.
func enter(t *testing.T, s sandbox.Session, name string) {
	t.Helper()
	do(t, s, "mkdir "+name+" && cd "+name)
}

// try runs a command and returns its output and its exit status.
func try(t *testing.T, s sandbox.Session, command string) (output string, status int) {
	t.Helper()
	res, err := s.Execute(t.Context(), command)
	require.NoError(t, err)
	require.Equalf(t, sandbox.Exited, res.State, "%s: %s", command, res.Output)
	return res.Output, res.ExitCode
}

// do runs a command that must succeed, and returns its output.
func do(t *testing.T, s sandbox.Session, command string) string {
	t.Helper()
	output, status := try(t, s, command)
	require.Zerof(t, status, "%s: %s", command, output)
	return output
}

// refused runs a command that must end with this status and print these texts.
func refused(t *testing.T, s sandbox.Session, status int, command string, says ...string) {
	t.Helper()
	output, got := try(t, s, command)
	require.Equalf(t, status, got, "%s: %s", command, output)
	for _, s := range says {
		require.Contains(t, output, s, command)
	}
}

// call calls the tool as a model does.
func call(t *testing.T, s sandbox.Session, name, args string) (output string, status int) {
	t.Helper()
	command, err := agentskills.Command(name, []byte(args))
	require.NoError(t, err)
	return try(t, s, command)
}

// numbers writes lines "line 1" to "line n" to a file.
func numbers(t *testing.T, s sandbox.Session, file string, n int) {
	t.Helper()
	do(t, s, fmt.Sprintf("seq %d | sed 's/^/line /' >%s", n, file)) // busybox awk is slow to print
}

func lines(list ...string) string { return strings.Join(list, "\n") + "\n" }

func plugins() []plugin.Plugin { return []plugin.Plugin{agentskills.Plugin()} }
