//go:build unix

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/ptytest"
	"github.com/stretchr/testify/require"
)

const testImage = "sandshell-test:latest"

// program is this test's binary. If asProgram is set in the environment, the binary is the program.
// So the linker has only one binary to make.
var program = os.Args[0]

const asProgram = "SANDSHELL_TEST_INTERACTIVE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Setenv(asProgram, "1") // for the programs that the tests start
	os.Exit(m.Run())
}

const prompt = `.*[$#]`

// boxes runs test with each kind of box that this machine has.
func boxes(t *testing.T, test func(t *testing.T, args ...string)) {
	t.Run("Local", func(t *testing.T) { test(t, "-box", "local") })
	t.Run("Docker", func(t *testing.T) {
		dockertest.Engine(t, testImage)
		test(t, "-box", "docker")
	})
}

// need skips the test if this machine lacks a program. The test image has them all.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("this machine has no %s: install it: %v", program, err)
	}
}

func TestShell(t *testing.T) {
	boxes(t, func(t *testing.T, args ...string) {
		p := ptytest.Sit(t, program, args...)
		p.Sees(prompt)
		p.Types("cd /; echo $((6*7)) in $PWD\r")
		p.Sees("42 in /")
		p.Types("echo x\x7fyz\x1b[Dq\r") // with Backspace and Left, to edit the line
		p.Sees("yqz")
		// exec makes it one process. Between two processes, bash can miss an interrupt.
		p.Types("sh -c 'echo begun; exec sleep 1000'\r")
		p.Sees("begun")
		p.Types("\x03")
		p.Sees(`\^C`)
		p.Types("echo status $?\r")
		p.Sees("status 130")
		p.Types("(sleep 0.3; echo unasked) &\r") // the output is shown without a key
		p.Sees(prompt + " unasked")
		p.Types("printf 'one\\ntwo\\n'; read -s -p 'secret? ' s; echo \"$s\" | tr a-z A-Z\r")
		p.Sees(`secret\?`)
		p.Sees("one")
		p.Sees("two") // in the first column
		p.Types("quiet\r")
		p.Looks("answer after a secret", func(lines []string) bool {
			return regexp.MustCompile(`(?m)^secret\? *QUIET$`).MatchString(
				strings.Join(lines, "\n"))
		})
		p.Types("exit 3\r")
		p.Leaves(3)
	})
}

func TestFullScreen(t *testing.T) {
	boxes(t, func(t *testing.T, args ...string) {
		if args[1] == "local" {
			need(t, "vi")
			need(t, "less")
		}
		p := ptytest.Sit(t, program, args...)
		p.Sees(prompt)
		p.Types("cd $(mktemp -d); vi -u NONE note\r")
		p.SeesAt(22, "~")
		p.Types("ihello world")
		p.SeesAt(0, "hello world")
		p.Resizes(40, 100)
		p.SeesAt(38, "~") // vi uses the whole screen
		p.Types("\x1byyp:wq\r")
		p.Sees(prompt) // vi drops what is typed before its end
		p.Types("clear; cat note; stty size\r")
		p.Sees("40 100")
		p.SeesAt(0, "hello world")
		p.SeesAt(1, "hello world")

		p.Types("seq 200 | LESS= less\r")
		p.SeesAt(0, "1")
		p.SeesAt(38, "39")
		p.Types(" ")
		p.SeesAt(0, "40")
		p.Types("q")
		p.Sees(prompt)
		p.Types("rm note; rmdir $PWD; exit\r")
		p.Leaves(0)
	})
}

// TestCommand runs a command instead of a shell, and types before the command has begun.
func TestCommand(t *testing.T) {
	boxes(t, func(t *testing.T, args ...string) {
		p := ptytest.Sit(t, program, append(args, "--", `read -r name; echo "hello $name"; exit 7`)...)
		p.Types("ann\r")
		p.Sees("hello ann")
		p.Leaves(7)
	})
}

func TestTerminated(t *testing.T) {
	p := ptytest.Sit(t, program, "-box", "local", "--", "echo begun; sleep 1000")
	p.Sees("begun")
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	p.Leaves(1)
}

func TestNoTerminal(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "have to be a terminal")
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		want choice
		err  string
	}{
		{args: "", want: choice{box: "local"}},
		{args: "-box docker -image x", want: choice{box: "docker", image: "x"}},
		{args: "ann@there:2222", want: choice{box: "ssh", user: "ann", address: "there:2222"}},
		{args: "-box ssh there", want: choice{box: "ssh", address: "there"}},
		{args: "-box local -- top -d 1", want: choice{box: "local", command: "top -d 1"}},
		{args: "-box ssh", err: "needs a machine"},
		{args: "-box local there", err: "takes no machine"},
		{args: "-box cloud", err: "give local, docker or ssh"},
		{args: "there top", err: "after --"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got, err := parse(strings.Fields(c.args))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			if c.want.image == "" {
				c.want.image = testImage
			}
			if c.want.command == "" {
				c.want.command = shell
			}
			require.Equal(t, c.want, got)
		})
	}
}
