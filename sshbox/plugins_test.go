package sshbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/plugin/pytool"
)

// The plugins on a machine with an sshd, of which they change nothing but a home directory.
func TestPluginsOverSSH(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	if err := exec.Command("/usr/bin/python3", "-c",
		"import ipykernel, jupyter_client").Run(); err != nil {
		if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
			t.Fatalf("python3-ipykernel is not here: %v", err)
		}
		t.Skipf("jupyter would install packages on this machine: apt-get install "+
			"python3-ipykernel python3-jupyter-client (%v)", err)
	}
	c := s.config()
	home := t.TempDir()
	c.Env = []string{"HOME=" + home}
	box, err := Dial(limit(t), c)
	noError(t, err)
	defer box.Close()
	noError(t, box.InitPlugins(limit(t), agentskills.Plugin(), pytool.Plugin(), jupyter.Plugin()))

	does(t, box, "cd && create a.py <<'END'\nx = 41\nEND\n", 0,
		"[File: "+home+"/a.py (1 line total)]\n1:x = 41\n")
	does(t, box, "echo 'x = 42' | edit 1:1 >/dev/null; cat a.py", 0, "x = 42\n")
	tool := pytool.Tool{Function: "f", Source: "def f(a):\n    print('out')\n    return a + 1"}
	res, err := tool.Call(limit(t), box, pytool.Call{Args: map[string]int{"a": 41}})
	noError(t, err)
	if string(res.Value) != "42" || string(res.Stdout) != "out\n" {
		t.Errorf("%+v", res)
	}
	kernel, err := jupyter.Connect(limit(t), box, jupyter.Config{Dir: home})
	noError(t, err)
	defer kernel.Close()
	cell, err := kernel.Run(limit(t), "import a; print('out'); a.x")
	noError(t, err)
	if cell.Text != "42" || cell.Stdout != "out\n" {
		t.Errorf("%+v", cell)
	}
	does(t, box, "echo a.x+1 | execute_cli", 0, "43\n")

	noError(t, kernel.Close())
	if len(processesWith(t, "HOME="+home)) == 0 {
		t.Error("the kernel has not stayed")
	}
	noError(t, box.Close())
	for _, left := range processesWith(t, "HOME="+home) {
		if strings.Contains(left, "python") {
			t.Errorf("left: %s", left)
		}
	}
	// The shell by which SSHBox looks at the machine reads its input's end a moment after the
	// connection's.
	waitFor(t, "everything to end", func() bool { return len(processesWith(t, "HOME="+home)) == 0 })
}

// processesWith returns the processes that have a variable of the environment.
func processesWith(t *testing.T, variable string) (commands []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	noError(t, err)
	for _, file := range all {
		if env, err := os.ReadFile(file); err == nil &&
			slices.Contains(strings.Split(string(env), "\x00"), variable) {
			line, _ := os.ReadFile(filepath.Dir(file) + "/cmdline")
			commands = append(commands, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return commands
}
