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

// TestPluginsOverSSH sets plugins up on a machine with an sshd. They change nothing but a home
// directory.
func TestPluginsOverSSH(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	if err := exec.Command("/usr/bin/python3", "-c",
		"import ipykernel, jupyter_client").Run(); err != nil {
		if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
			t.Fatalf("python3-ipykernel is not installed: %v", err)
		}
		t.Skipf("jupyter would install packages on this machine: apt-get install "+
			"python3-ipykernel python3-jupyter-client (%v)", err)
	}
	c := s.config()
	home := t.TempDir()
	c.Env = []string{"HOME=" + home}
	box, err := Dial(testContext(t), c)
	noError(t, err)
	defer box.Close()
	noError(t, box.InitPlugins(testContext(t), agentskills.Plugin(), pytool.Plugin(),
		jupyter.Plugin()))

	expect(t, box, "cd && create a.py <<'END'\nx = 41\nEND\n", 0,
		"[File: "+home+"/a.py (1 line total)]\n1:x = 41\n")
	expect(t, box, "echo 'x = 42' | edit 1:1 >/dev/null; cat a.py", 0, "x = 42\n")
	tool := pytool.Tool{Function: "f", Source: "def f(a):\n    print('out')\n    return a + 1"}
	res, err := tool.Call(testContext(t), box, pytool.Call{Args: map[string]int{"a": 41}})
	noError(t, err)
	if string(res.Value) != "42" || string(res.Stdout) != "out\n" {
		t.Errorf("%+v", res)
	}
	kernel, err := jupyter.Connect(testContext(t), box, jupyter.Config{Dir: home})
	noError(t, err)
	defer kernel.Close()
	cell, err := kernel.Run(testContext(t), "import a; print('out'); a.x")
	noError(t, err)
	if cell.Text != "42" || cell.Stdout != "out\n" {
		t.Errorf("%+v", cell)
	}
	expect(t, box, "echo a.x+1 | execute_cli", 0, "43\n")

	noError(t, kernel.Close())
	if len(commandsWithVariable(t, "HOME="+home)) == 0 {
		t.Error("the kernel ended with its client")
	}
	noError(t, box.Close())
	for _, left := range commandsWithVariable(t, "HOME="+home) {
		if strings.Contains(left, "python") {
			t.Errorf("Close has left a process: %s", left)
		}
	}
	// The shell that watches the machine's processes for SSHBox ends a moment after the connection,
	// when it reads the end of its input.
	waitFor(t, "everything to end", func() bool {
		return len(commandsWithVariable(t, "HOME="+home)) == 0
	})
}

// commandsWithVariable returns the command lines of the processes that have a variable in their
// environment.
func commandsWithVariable(t *testing.T, variable string) (commands []string) {
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
