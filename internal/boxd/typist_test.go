//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A typist uses ssh -t on a terminal.
type typist struct {
	*safeBuffer
	t        testing.TB
	terminal *os.File
	cmd      *exec.Cmd
	ended    chan error
}

func (p *person) startTypist(args ...string) *typist {
	p.t.Helper()
	cmd := p.command("ssh", append([]string{"-F", p.config, "-t", "box"}, args...)...)
	y := &typist{safeBuffer: new(safeBuffer), t: p.t, cmd: cmd, ended: make(chan error, 1)}
	y.cmd.Env = append(y.cmd.Env, "TERM=xterm-256color")
	var err error
	if y.terminal, err = pty.StartWithSize(y.cmd, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		p.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(y, y.terminal)
	}()
	go func() {
		err := y.cmd.Wait()
		<-read
		y.ended <- err
	}()
	p.t.Cleanup(func() {
		y.cmd.Process.Kill()
		<-read
		y.terminal.Close()
		if p.t.Failed() {
			p.t.Logf("the screen: %q", y)
		}
	})
	return y
}

// typeUntil types text, and waits until shows is printed.
func (y *typist) typeUntil(text, shows string) {
	y.t.Helper()
	seen := len(y.String())
	io.WriteString(y.terminal, text)
	waitFor(y.t, fmt.Sprintf("%q shows %q", text, shows), func() bool {
		return strings.Contains(y.String()[seen:], shows)
	})
}

func (y *typist) waitExit(status int) {
	y.t.Helper()
	select {
	case err := <-y.ended:
		var exit *exec.ExitError
		if status == 0 && err != nil || status != 0 &&
			(!errors.As(err, &exit) || exit.ExitCode() != status) {
			y.t.Errorf("ssh ended with %v", err)
		}
	case <-time.After(testenv.Limit):
		y.t.Error("ssh does not end")
	}
}

func TestTypist(t *testing.T) {
	const prompt = "\x1b[?2004h" // readline enables bracketed paste at each prompt
	p := newPerson(t, "stty")
	before := p.box.steady()
	y := p.startTypist()
	y.typeUntil("stty -a; echo $TERM\r", "xterm-256color")
	for _, want := range []string{" onlcr", " echoctl", "rows 30; columns 100", "iutf8"} {
		if !strings.Contains(y.String(), want) {
			t.Errorf("there is no %q", want)
		}
	}
	if err := pty.Setsize(y.terminal, &pty.Winsize{Rows: 40, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the new size arrives", func() bool {
		seen := len(y.String())
		y.typeUntil("stty size\r", "stty size\r\n")
		waitFor(t, "stty answers", func() bool {
			return strings.Count(y.String()[seen:], "\n") > 1
		})
		return strings.Contains(y.String()[seen:], "40 77")
	})
	// Wait for the output of echo. Text that is typed before the shell has set the modes for cat is
	// echoed in another way.
	y.typeUntil("echo u''p; cat\r", "up\r\n")
	y.typeUntil("line\r", "line\r\nline\r\n")
	y.typeUntil("\x03", prompt) // cat has read the line before
	y.typeUntil("echo st=$?\r", "st=130")
	y.typeUntil("sleep 1000 & wait\r", "wait\r\n")
	y.typeUntil("\x03", prompt)
	y.typeUntil("exit 4\r", "")
	y.waitExit(4)
	p.box.settled(before)
}

func TestFullScreenPrograms(t *testing.T) {
	p := newPerson(t, "vim", "less")
	file := filepath.Join(p.box.dir, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("some line\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	y := p.startTypist("less", "file")
	y.typeUntil("", "some line")
	y.typeUntil("G", "(END)")
	y.typeUntil("q", "")
	y.waitExit(0)

	y = p.startTypist("vim", "-u", "NONE", "-n", "file")
	y.typeUntil("", "some line")
	y.typeUntil("Ohello\x1b:wq\r", "written")
	y.waitExit(0)
	if data, err := os.ReadFile(file); err != nil ||
		!strings.HasPrefix(string(data), "hello\nsome line\n") {
		t.Errorf("%.30q, %v", data, err)
	}
}
