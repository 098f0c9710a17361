//go:build unix

package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/ptytest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

const prompt = `.*[$#]`

// sit starts sandshell on a terminal.
func sit(t *testing.T, args ...string) *ptytest.Person {
	t.Helper()
	program, err := exec.LookPath("sandshell") // testscript.Main has made it
	require.NoError(t, err)
	return ptytest.Sit(t, program, args...)
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	p := sit(t, "run", "-place", "local")
	p.Sees(prompt)
	p.Types("cd /; echo $((6*7)) in $PWD\r")
	p.Sees("42 in /")
	p.Types("sh -c 'echo begun; exec sleep 1000'\r")
	p.Sees("begun")
	p.Types("\x03")
	p.Sees(`\^C`)
	p.Types("echo status $?\r")
	p.Sees("status 130")
	p.Resizes(40, 100)
	p.Types("clear; stty size\r")
	p.Sees("40 100")
	p.Types("exit 3\r")
	p.Leaves(3)
}

// TestTerminalCommand types before the command has begun, and a "~" that leaves nothing.
func TestTerminalCommand(t *testing.T) {
	t.Parallel()
	p := sit(t, "run", "-place", "local", "sh", "-c", `read -r name; echo "hello $name"; exit 7`)
	p.Types("ann~.\r")
	p.Sees("hello ann~.")
	p.Leaves(7)
}

// TestTerminalEnds shows that every end of sandshell restores the terminal and leaves nothing.
func TestTerminalEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(p *ptytest.Person)
		status int
	}{
		"SIGTERM": {func(p *ptytest.Person) { p.Cmd.Process.Signal(syscall.SIGTERM) }, 143},
		"SIGINT":  {func(p *ptytest.Person) { p.Cmd.Process.Signal(syscall.SIGINT) }, 130},
		"Left":    {func(p *ptytest.Person) { p.Types("\r~.") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, "run", "-place", "local", "sh", "-c", "echo begun; exec sleep 1000")
			p.Sees("begun")
			c.end(p)
			p.Leaves(c.status)
		})
	}
}

// TestAttach leaves a command in a container, and goes on with it.
func TestAttach(t *testing.T) {
	testenv.NeedsAll(t, "containers take a second each; TestTerminal has the terminal")
	dockertest.Engine(t, dockertest.Image)
	p := sit(t, "run", "-pull", "never", "-keep", "-network", "none", dockertest.Image)
	p.Sees(prompt)
	p.Types("X=remembered; clear; read -r -p '? ' answer; echo $X $answer\r")
	p.SeesAt(0, "?")
	p.Types("~.")
	p.Sees("sandshell: the box stays: sandshell attach .+")
	var name string
	for line := range strings.Lines(p.Shown()) {
		_, after, _ := strings.Cut(line, "attach ")
		name = strings.TrimSpace(after)
	}
	p.Leaves(0)
	t.Cleanup(func() { sit(t, "rm", "-force", name).Leaves(0) })

	p = sit(t, "attach", name)
	p.SeesAt(0, "?")
	p.Types("well\r")
	p.Sees(`.*remembered well`)
	p.Types("clear; seq 3; sleep 1000\r")
	p.Sees("3")
	require.NoError(t, p.Cmd.Process.Kill()) // the terminal is lost
	p.Cmd.Wait()

	p = sit(t, "attach", name)
	p.SeesAt(2, "3") // what was on the screen
	p.Types("\x03")
	p.Sees(`\^C`)
	p.Types("exit 5\r")
	p.Leaves(5)
}
