//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// keystrokes are the very bytes that the engine types, overheard.
type keystrokes struct {
	init    []byte   // to make a shell its own
	command [][]byte // for the command ":", in pieces between which its number stands
	first   int      // the number of the first command after init
}

// overhear has the engine execute two commands ":" and tells their number, which counts, from the rest.
func overhear(t testing.TB) keystrokes {
	t.Helper()
	l := &listener{}
	box, err := shellbox.New(t.Context(), l, shellbox.Options{Shell: shellArgs})
	noError(t, err)
	defer box.Close()
	execute(t, box, ":")
	execute(t, box, ":")
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.typed) != 3 || len(l.typed[1]) != len(l.typed[2]) {
		t.Fatalf("the engine types otherwise than this benchmark knows: %q", l.typed)
	}
	k := keystrokes{init: l.typed[0]}
	one, two := l.typed[1], l.typed[2]
	begin := 0
	for i := range one {
		if one[i] == two[i] {
			continue
		}
		if k.first, err = strconv.Atoi(string(one[i : i+1])); err != nil || two[i] != one[i]+1 {
			t.Fatalf("the engine's commands differ in more than a number: %q", l.typed)
		}
		k.command = append(k.command, one[begin:i])
		begin = i + 1
	}
	k.command = append(k.command, one[begin:])
	return k
}

// line is what is typed for command number n.
func (k keystrokes) line(n int) []byte { return bytes.Join(k.command, []byte(strconv.Itoa(n))) }

// ended is what the terminal shows when command number n has ended with status 0, see shellbox/marker.go.
func ended(n int) []byte { return fmt.Appendf(nil, "\x1b]133;D;0;%d;", n) }

// adopt makes s a shell as the engine has it, and returns what executes ":" in it.
func (k keystrokes) adopt(s *bareShell) func() {
	s.typeLine(k.init)
	s.until(ended(k.first-1), 0)
	n := k.first
	return func() {
		s.typeLine(k.line(n))
		s.until(ended(n), 0)
		n++
	}
}

// A listener is this machine as a Host that writes down what is typed.
type listener struct {
	local
	mu    sync.Mutex
	typed [][]byte
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

func (o overheard) Stdin() io.WriteCloser { return o }

func (o overheard) Write(p []byte) (int, error) {
	o.l.mu.Lock()
	o.l.typed = append(o.l.typed, bytes.Clone(p))
	o.l.mu.Unlock()
	return o.Process.Stdin().Write(p)
}
