//go:build unix

// Package ptytest lets tests use a program on a terminal, as a person does.
package ptytest

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
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

// A person uses the program on a terminal, and sees only the terminal's screen.
type Person struct {
	*testing.T
	Cmd     *exec.Cmd // the program
	console *expect.Console
	screen  vt10x.Terminal
	before  *term.State // the terminal's modes before the program has started
	temp    string      // the program's directory for temporary files
}

// Sit starts a program on a terminal of 24 × 80.
func Sit(t *testing.T, program string, args ...string) *Person {
	t.Helper()
	p := &Person{T: t, screen: vt10x.New(vt10x.WithSize(80, 24)), temp: t.TempDir()}
	var err error
	p.console, err = expect.NewConsole(expect.WithStdout(p.screen))
	require.NoError(t, err)
	t.Cleanup(func() { p.console.Close() })
	tty := p.console.Tty()
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 80}))
	p.before, err = term.GetState(int(tty.Fd()))
	require.NoError(t, err)

	p.Cmd = exec.Command(program, args...)
	p.Cmd.Env = append(os.Environ(), "TMPDIR="+p.temp, "HOME="+t.TempDir(), "TERM=xterm")
	p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = tty, tty, tty
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.Cmd.Start())
	t.Cleanup(func() {
		if p.Cmd.ProcessState == nil {
			p.Cmd.Process.Kill()
			p.Cmd.Wait()
		}
	})
	return p
}

// Types types keys.
func (p *Person) Types(keys string) {
	p.Helper()
	_, err := p.console.Send(keys)
	require.NoError(p, err)
}

// Resizes changes the size of the window.
func (p *Person) Resizes(rows, cols int) {
	p.Helper()
	p.screen.Resize(cols, rows)
	require.NoError(p, pty.Setsize(p.console.Tty(), &pty.Winsize{Rows: uint16(rows),
		Cols: uint16(cols)}))
}

// Lines returns the lines of the screen, without spaces at their ends.
func (p *Person) Lines() []string {
	lines := strings.Split(p.screen.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}

// Shown returns the screen as one text.
func (p *Person) Shown() string { return strings.TrimSpace(strings.Join(p.Lines(), "\n")) }

// Looks waits until found is true for the lines of the screen. go-expect reads from the terminal
// only during Expect. A timeout of Expect loses nothing: what it has read is on the screen.
func (p *Person) Looks(what string, found func(lines []string) bool) {
	p.Helper()
	for end := time.Now().Add(testenv.Limit); !found(p.Lines()); {
		require.Truef(p, time.Now().Before(end), "no %s on the screen:\n%s", what, p.Shown())
		p.console.Expect(expect.WithTimeout(20*time.Millisecond), expect.String("\x00"))
	}
}

// Sees waits for a line of the screen that matches as a whole.
func (p *Person) Sees(line string) {
	p.Helper()
	re := regexp.MustCompile("^(?:" + line + ")$")
	p.Looks(line, func(lines []string) bool {
		for _, l := range lines {
			if re.MatchString(l) {
				return true
			}
		}
		return false
	})
}

// SeesAt waits for a line in a row, counted from 0.
func (p *Person) SeesAt(row int, line string) {
	p.Helper()
	p.Looks(line, func(lines []string) bool { return row < len(lines) && lines[row] == line })
}

// Leaves waits for the program's end. It checks that the terminal's modes are restored, and that no
// box is left.
func (p *Person) Leaves(status int) {
	p.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.Cmd.Wait() }()
	for end := time.Now().Add(testenv.Limit); len(ended) == 0; {
		require.Truef(p, time.Now().Before(end), "the program does not end:\n%s", p.Shown())
		p.console.Expect(expect.WithTimeout(20*time.Millisecond), expect.String("\x00"))
	}
	<-ended
	require.Equal(p, status, p.Cmd.ProcessState.ExitCode(), p.Shown())
	after, err := term.GetState(int(p.console.Tty().Fd()))
	require.NoError(p, err)
	require.Equal(p, p.before, after, "the terminal's modes")
	left, err := os.ReadDir(p.temp)
	require.NoError(p, err)
	require.Empty(p, left, "left in the temporary directory")
}
