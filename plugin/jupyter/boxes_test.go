package jupyter_test

import (
	"os"
	"testing"

	"github.com/sandshell/sandshell/internal/boxtest"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sshbox"
)

// matplotlib is what figures are made with: the example's, so that one image does for both. On this machine it has to be there.
func matplotlib() plugin.Plugin {
	return plugin.Plugin{Name: "matplotlib", Requires: []string{"jupyter"}, Files: os.DirFS("../../examples/jupyter/matplotlib")}
}

// TestBoxes does everything in each kind of box.
func TestBoxes(t *testing.T) {
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
		{"Interrupt", testInterrupt},
		{"Cancel", testCancel},
		{"CancelInQueue", testCancelInQueue},
		{"Complete", testComplete},
		{"Death", testDeath},
		{"Restart", testRestart},
		{"Kernels", testKernels},
		{"Goroutines", testGoroutines},
		{"Close", testClose},
		{"CLI", testCLI},
		{"CLIFigure", testCLIFigure},
		{"CLIInterrupt", testCLIInterrupt},
		{"CLIInput", testCLIInput},
		{"CLIDeath", testCLIDeath},
		{"CLIAtOnce", testCLIAtOnce},
	}
	in := func(kind string, box func(t *testing.T) boxtest.Box) {
		t.Run(kind, func(t *testing.T) {
			b := box(t)
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) { c.test(t, b, c.name) })
			}
		})
	}
	plugins := []plugin.Plugin{jupyter.Plugin(), matplotlib()}
	in("LocalBox", func(t *testing.T) boxtest.Box {
		needPython(t, "ipykernel", "jupyter_client", "matplotlib")
		return boxtest.Local(t, plugins...)
	})
	in("boxd", func(t *testing.T) boxtest.Box { return boxtest.Container(t, sshbox.Config{}, plugins...) })
	in("openssh", func(t *testing.T) boxtest.Box {
		return boxtest.Container(t, sshbox.Config{Server: sshbox.OpenSSH}, plugins...)
	})
}

// TestConfined does the least in a box that may do the least, with what has been set up where more was allowed.
func TestConfined(t *testing.T) {
	c := sshbox.Config{Network: "none", PluginNetwork: "bridge", ReadOnlyRoot: true, CapDrop: []string{"ALL"}}
	b := boxtest.Container(t, c, jupyter.Plugin(), matplotlib())
	testState(t, b, "one")
	testFigure(t, b, "two")
	testDeath(t, b, "three")
	testCLI(t, b, "four")
	testCLIFigure(t, b, "five")
}
