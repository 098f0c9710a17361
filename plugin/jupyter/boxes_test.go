package jupyter_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// matplotlib returns the plugin of examples/jupyter, so that both use the same image. In a LocalBox
// this machine must have matplotlib.
func matplotlib() plugin.Plugin {
	return plugin.Plugin{Name: "matplotlib", Requires: []string{"jupyter"},
		Files: os.DirFS("../../examples/jupyter/matplotlib")}
}

// TestBoxes runs every test in each kind of box.
func TestBoxes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		test func(t *testing.T, b boxtest.Box, kernel string)
	}{
		{"State", testState},
		{"Outputs", testOutputs},
		{"Figure", testFigure},
		{"Displays", testDisplays},
		{"Stream", testStream},
		{"MuchOutput", testMuchOutput},
		{"Input", testInput},
		{"BlockingCallback", testBlockingCallback},
		{"Interrupt", testInterrupt},
		{"NoReply", testNoReply},
		{"Cancel", testCancel},
		{"CancelInQueue", testCancelInQueue},
		{"Complete", testComplete},
		{"Death", testDeath},
		{"Exit", testExit},
		{"Restart", testRestart},
		{"Kernels", testKernels},
		{"Listed", testListed},
		{"Silent", testSilent},
		{"Goroutines", testGoroutines},
		{"Close", testClose},
		{"CLI", testCLI},
		{"CLIFigure", testCLIFigure},
		{"CLIInterrupt", testCLIInterrupt},
		{"CLIInput", testCLIInput},
		{"CLIDeath", testCLIDeath},
		{"CLIExit", testCLIExit},
		{"CLIAtOnce", testCLIAtOnce},
	}
	daily := []string{"State", "Outputs", "Input", "Interrupt", "NoReply", "Death", "Listed",
		"Silent", "CLI"}
	in := func(kind string, left func(t testing.TB, why string),
		box func(t *testing.T) boxtest.Box) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := box(t)
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					if !slices.Contains(daily, c.name) {
						left(t, "kernels are slow to start: the default has the most used, and CI "+
							"all in a container")
					}
					c.test(t, b, c.name)
				})
			}
		})
	}
	plugins := []plugin.Plugin{jupyter.Plugin(), matplotlib()}
	in("LocalBox", testenv.NeedsFull, func(t *testing.T) boxtest.Box {
		needPython(t, "ipykernel", "jupyter_client", "matplotlib")
		return boxtest.Local(t, plugins...)
	})
	in("DockerSSHBox", testenv.NeedsAll, func(t *testing.T) boxtest.Box {
		return container(t, sshbox.Config{}, plugins...)
	})
}

// image makes the image, in a container without a limit of memory: apt-get needs more than some
// tests have.
var image sync.Once

// container makes a box with Jupyter.
func container(t *testing.T, c sshbox.Config, plugins ...plugin.Plugin) *sshbox.DockerSSHBox {
	t.Helper()
	testenv.NeedsAll(t, "installing Jupyter and matplotlib in a container takes two minutes; "+
		"the default uses this machine's kernel")
	image.Do(func() {
		require.NoError(t, boxtest.Container(t, sshbox.Config{}, plugins...).Close())
	})
	return boxtest.Container(t, c, plugins...)
}

// TestConfined runs a few tests in a box that is read-only and has no capabilities and no network.
// The plugins were set up in a box that had them.
func TestConfined(t *testing.T) {
	t.Parallel()
	c := sshbox.Config{Network: "none", PluginNetwork: "bridge", ReadOnlyRoot: true,
		CapDrop: []string{"ALL"}}
	b := container(t, c, jupyter.Plugin(), matplotlib())
	testState(t, b, "one")
	testFigure(t, b, "two")
	testDeath(t, b, "three")
	testCLI(t, b, "four")
	testCLIFigure(t, b, "five")
}

// A user who may not install Debian's packages gets a kernel by pip, from pip's configured index.
func TestPip(t *testing.T) {
	testenv.NeedsFull(t, "it installs Jupyter once more, to make wheels of it; the default runs "+
		"pip in pytool's TestRequirements")
	debians := container(t, sshbox.Config{}, jupyter.Plugin())
	require.NoError(t, debians.CopyTo(t.Context(), "testdata/wheels.py", "/tmp/wheels.py"))
	require.Zero(t, execute(t, debians, "python3 /tmp/wheels.py /tmp/index").ExitCode)
	index := filepath.Join(t.TempDir(), "index")
	require.NoError(t, debians.CopyFrom(t.Context(), "/tmp/index", index))

	b := boxtest.Container(t, sshbox.Config{User: "user", Network: "none", Env: []string{
		"PIP_INDEX_URL=http://127.0.0.1:8000/simple/", "LD_LIBRARY_PATH=/tmp/index/lib",
	}})
	err := b.InitPlugins(t.Context(), jupyter.Plugin())
	require.ErrorContains(t, err, "No matching distribution found for ipykernel\nno IPython "+
		"kernel: no python3 here has ipykernel", "nothing listens at the index")
	require.NoError(t, b.CopyTo(t.Context(), index, "/tmp/index"))
	_, err = b.Background(t.Context(), "python3 -m http.server --bind 127.0.0.1 --directory "+
		"/tmp/index 8000")
	require.NoError(t, err)
	var out strings.Builder
	p := jupyter.Plugin()
	p.Output = &out
	require.NoError(t, b.InitPlugins(t.Context(), p), "%s", &out)
	require.Regexp(t, "Successfully installed .*ipykernel-", out.String())
	r := run(t, connect(t, b, "default"), "import sys, ipykernel; [sys.prefix, ipykernel.__file__]")
	require.Contains(t, r.Text, "/jupyter/venv'")
	require.Contains(t, r.Text, "/jupyter/venv/lib/")
	require.Equal(t, "2\n", execute(t, b, "echo 1 + 1 | execute_cli").Output)
	require.Equal(t, "", execute(t, b, "ls -A ~/.cache 2>/dev/null").Output)
}
