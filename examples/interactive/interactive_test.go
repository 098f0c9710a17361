//go:build unix

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	expect "github.com/Netflix/go-expect"
	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

const testImage = "sandshell-test:latest"

// program is this test's binary, which is the program where asProgram is set: so there is one to
// link, not two.
var program = os.Args[0]

const asProgram = "SANDSHELL_TEST_INTERACTIVE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Setenv(asProgram, "1") // for those that the tests start
	os.Exit(m.Run())
}

// A person sits at a terminal in which the program runs, and knows only what the screen shows.
type person struct {
	*testing.T
	console *expect.Console
	screen  vt10x.Terminal
	cmd     *exec.Cmd
	before  *term.State // of the terminal
	temp    string      // where the program has its temporary files
}

// sit starts the program.
func sit(t *testing.T, args ...string) *person {
	t.Helper()
	p := &person{T: t, screen: vt10x.New(vt10x.WithSize(80, 24)), temp: t.TempDir()}
	var err error
	p.console, err = expect.NewConsole(expect.WithStdout(p.screen))
	require.NoError(t, err)
	t.Cleanup(func() { p.console.Close() })
	tty := p.console.Tty()
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 80}))
	p.before, err = term.GetState(int(tty.Fd()))
	require.NoError(t, err)

	p.cmd = exec.Command(program, args...)
	p.cmd.Env = append(os.Environ(), "TMPDIR="+p.temp, "HOME="+t.TempDir(), "TERM=xterm")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	})
	return p
}

func (p *person) types(keys string) {
	p.Helper()
	_, err := p.console.Send(keys)
	require.NoError(p, err)
}

// resizes changes the size of the window.
func (p *person) resizes(rows, cols int) {
	p.Helper()
	p.screen.Resize(cols, rows)
	require.NoError(p, pty.Setsize(p.console.Tty(), &pty.Winsize{Rows: uint16(rows),
		Cols: uint16(cols)}))
}

func (p *person) lines() []string {
	lines := strings.Split(p.screen.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}

func (p *person) shown() string { return strings.TrimSpace(strings.Join(p.lines(), "\n")) }

// looks looks at the screen until there is what is looked for. go-expect reads from the terminal
// only while it expects something; what it forgets at a timeout has got to the screen all the same.
func (p *person) looks(what string, there func(lines []string) bool) {
	p.Helper()
	for end := time.Now().Add(30 * time.Second); !there(p.lines()); {
		require.Truef(p, time.Now().Before(end), "no %s on the screen:\n%s", what, p.shown())
		p.console.Expect(expect.WithTimeout(20*time.Millisecond), expect.String("\x00"))
	}
}

// sees looks for a line that matches from its begin to its end.
func (p *person) sees(line string) {
	p.Helper()
	re := regexp.MustCompile("^(?:" + line + ")$")
	p.looks(line, func(lines []string) bool {
		for _, l := range lines {
			if re.MatchString(l) {
				return true
			}
		}
		return false
	})
}

// seesAt looks for a line in that row, counted from 0.
func (p *person) seesAt(row int, line string) {
	p.Helper()
	p.looks(line, func(lines []string) bool { return row < len(lines) && lines[row] == line })
}

// leaves waits for the program's end and checks what it leaves behind: a terminal as it was, and no
// box.
func (p *person) leaves(status int) {
	p.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	for end := time.Now().Add(30 * time.Second); len(ended) == 0; {
		require.Truef(p, time.Now().Before(end), "the program does not end:\n%s", p.shown())
		p.console.Expect(expect.WithTimeout(20*time.Millisecond), expect.String("\x00"))
	}
	<-ended
	require.Equal(p, status, p.cmd.ProcessState.ExitCode(), p.shown())
	after, err := term.GetState(int(p.console.Tty().Fd()))
	require.NoError(p, err)
	require.Equal(p, p.before, after, "the terminal's modes")
	left, err := os.ReadDir(p.temp)
	require.NoError(p, err)
	require.Empty(p, left, "left in the temporary directory")
}

const prompt = `.*[$#]`

// boxes runs test on each kind of box that there is.
func boxes(t *testing.T, test func(t *testing.T, args ...string)) {
	t.Run("Local", func(t *testing.T) { test(t, "-box", "local") })
	t.Run("Docker", func(t *testing.T) {
		dockertest.Engine(t, testImage)
		test(t, "-box", "docker")
	})
}

// need skips the test if this machine has no such program. The test image has them all.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("this machine has no %s: make image makes one that has: %v", program, err)
	}
}

func TestShell(t *testing.T) {
	boxes(t, func(t *testing.T, args ...string) {
		p := sit(t, args...)
		p.sees(prompt)
		p.types("cd /; echo $((6*7)) in $PWD\r")
		p.sees("42 in /")
		p.types("echo x\x7fyz\x1b[Dq\r") // backspace, and the left arrow: the shell edits its line
		p.sees("yqz")
		// in one process: bash misses an interrupt between two
		p.types("sh -c 'echo begun; exec sleep 1000'\r")
		p.sees("begun")
		p.types("\x03")
		p.sees(`\^C`)
		p.types("echo status $?\r")
		p.sees("status 130")
		p.types("(sleep 0.3; echo unasked) &\r") // it is shown although nobody touches a key
		p.sees(prompt + " unasked")
		p.types("printf 'one\\ntwo\\n'; read -s -p 'secret? ' s; echo \"$s\" | tr a-z A-Z\r")
		p.sees(`secret\?`)
		p.sees("one")
		p.sees("two") // in the first column
		p.types("quiet\r")
		p.looks("answer after a secret", func(lines []string) bool {
			return regexp.MustCompile(`(?m)^secret\? *QUIET$`).MatchString(
				strings.Join(lines, "\n"))
		})
		p.types("exit 3\r")
		p.leaves(3)
	})
}

func TestFullScreen(t *testing.T) {
	boxes(t, func(t *testing.T, args ...string) {
		if args[1] == "local" {
			need(t, "vi")
			need(t, "less")
		}
		p := sit(t, args...)
		p.sees(prompt)
		p.types("cd $(mktemp -d); vi -u NONE note\r")
		p.seesAt(22, "~")
		p.types("ihello world")
		p.seesAt(0, "hello world")
		p.resizes(40, 100)
		p.seesAt(38, "~") // drawn again, on all of it
		p.types("\x1byyp:wq\r")
		p.sees(prompt) // vi throws away what is typed ahead
		p.types("clear; cat note; stty size\r")
		p.sees("40 100")
		p.seesAt(0, "hello world")
		p.seesAt(1, "hello world")

		p.types("seq 200 | LESS= less\r")
		p.seesAt(0, "1")
		p.seesAt(38, "39")
		p.types(" ")
		p.seesAt(0, "40")
		p.types("q")
		p.sees(prompt)
		p.types("rm note; rmdir $PWD; exit\r")
		p.leaves(0)
	})
}

// TestCommand runs a command in place of a shell, and types before it is there.
func TestCommand(t *testing.T) {
	boxes(t, func(t *testing.T, args ...string) {
		p := sit(t, append(args, "--", `read -r name; echo "hello $name"; exit 7`)...)
		p.types("ann\r")
		p.sees("hello ann")
		p.leaves(7)
	})
}

func TestTerminated(t *testing.T) {
	p := sit(t, "-box", "local", "--", "echo begun; sleep 1000")
	p.sees("begun")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.leaves(1)
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
		{args: "-box ssh", err: "which machine"},
		{args: "-box local there", err: "no use for the machine"},
		{args: "-box cloud", err: "it can be local, docker or ssh"},
		{args: "there top", err: "goes after --"},
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
