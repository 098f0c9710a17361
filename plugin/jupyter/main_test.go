package jupyter_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// needPython skips the test where this machine has no python with these modules. In CI it fails
// then.
func needPython(t testing.TB, modules ...string) {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return
		}
	}
	const missing = "no python3 here has the modules %v: apt-get install python3-ipykernel " +
		"python3-jupyter-client python3-matplotlib"
	if os.Getenv("CI") == "true" || os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
		t.Fatalf(missing, modules)
	}
	t.Skipf(missing, modules)
}

// local returns a LocalBox with the plugin.
func local(t testing.TB) boxtest.Box {
	t.Helper()
	needPython(t, "ipykernel", "jupyter_client")
	return boxtest.Local(t, jupyter.Plugin())
}

// limit returns a context for a call that should be quick. It lasts longer than execute_cli waits
// for a kernel to start, because the error of execute_cli says what is wrong.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connect connects to a kernel, and closes the client when the test ends.
func connect(t testing.TB, b sandbox.Sandbox, kernel string) *jupyter.Client {
	t.Helper()
	return connectTo(t, b, jupyter.Config{Kernel: kernel})
}

func connectTo(t testing.TB, b sandbox.Sandbox, config jupyter.Config) *jupyter.Client {
	t.Helper()
	c, err := jupyter.Connect(limit(t), b, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// run runs a cell that must not raise.
func run(t testing.TB, c *jupyter.Client, code string, opts ...jupyter.RunOption) *jupyter.Result {
	t.Helper()
	r, err := c.Run(limit(t), code, opts...)
	require.NoError(t, err)
	require.Nil(t, r.Error)
	return r
}

// when returns a Stream option that calls f when the cell has printed text.
func when(text string, f func()) jupyter.RunOption {
	seen := ""
	return jupyter.Stream(func(e jupyter.Event) {
		had := strings.Contains(seen, text)
		if seen += e.Stdout; !had && strings.Contains(seen, text) {
			f()
		}
	})
}

// execute runs a command in the main session.
func execute(t testing.TB, b sandbox.Sandbox, command string,
	opts ...sandbox.ExecOption) *sandbox.Result {
	t.Helper()
	r, err := b.Execute(limit(t), command, opts...)
	require.NoError(t, err)
	return r
}
