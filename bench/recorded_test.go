//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// recorded is the line that package shellbox types to a shell for the command ":".
type recorded struct {
	line []byte
	tty  []byte // the name of that shell's terminal, which is in the line
	// what the terminal shows, before the directory, after the command has ended with status 0: see
	// shellbox/marker.go
	end []byte
}

// record executes the command ":" in a session, and records what it types.
func record(t testing.TB) recorded {
	t.Helper()
	l := &listener{}
	box, err := shellbox.New(t.Context(), l, shellbox.Options{Shell: shellArgs})
	noError(t, err)
	defer box.Close()
	execute(t, box, ":")
	l.forget()
	execute(t, box, ":")
	line := l.sent()
	m := regexp.MustCompile(`133;D;(\d+);([0-9a-f]+);`).FindSubmatch(line)
	tty := regexp.MustCompile(`/dev/pts/\d+`).Find(line)
	if m == nil || tty == nil {
		t.Fatalf("the engine's lines are others than this benchmark knows: %q", line)
	}
	return recorded{line, tty, fmt.Appendf(nil, "\x1b]133;D;%s;%s;0;", m[1], m[2])}
}

// repeat returns a function that types the line to s, a shell on another terminal, without echo.
func (r recorded) repeat(s *bareShell) func() {
	s.typeLine([]byte("stty -echo; PS1= PS2=; printf '<%s>\\a' \"$(tty)\"\n"))
	s.until([]byte("</dev/pts/"), 0)
	tty := regexp.MustCompile(`</(dev/pts/\d+)>`).FindSubmatch(s.seen)
	if tty == nil {
		s.t.Fatalf("the bare shell's terminal is not in %q", s.seen)
	}
	line := bytes.ReplaceAll(r.line, r.tty, append([]byte("/"), tty[1]...))
	return func() {
		s.typeLine(line)
		s.until(r.end, 0)
	}
}

// A listener is this machine as a Host. It records what its shell is sent.
type listener struct {
	local
	mu    sync.Mutex
	lines []byte
}

func (l *listener) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
}

func (l *listener) sent() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.lines)
}

func (l *listener) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	proc, err := l.local.Start(ctx, p)
	if err == nil && p.Terminal != nil {
		proc = overheard{proc, l}
	}
	return proc, err
}

type overheard struct {
	shellbox.Process
	l *listener
}

func (o overheard) Commands() io.WriteCloser { return o }

func (o overheard) Write(p []byte) (int, error) {
	o.l.mu.Lock()
	o.l.lines = append(o.l.lines, p...)
	o.l.mu.Unlock()
	return o.Process.Commands().Write(p)
}
