package hosttest

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// A Shell is a program with Terminal.Commands, and all that its terminal has shown.
type Shell struct {
	shellbox.Process

	mu    sync.Mutex
	shown bytes.Buffer
}

// StartShell starts a program with Terminal.Commands. If args is empty, the program is sh -i. The
// program is closed when the test ends.
func StartShell(t testing.TB, h shellbox.Host, args ...string) *Shell {
	t.Helper()
	if len(args) == 0 {
		args = []string{"sh", "-i"}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	p, err := h.Start(ctx, shellbox.Program{Args: args, Env: []string{"PS1=", "ENV="},
		Terminal: &shellbox.Terminal{Rows: 24, Cols: 80, Commands: true}})
	require.NoError(t, err)
	s := &Shell{Process: p}
	var read sync.WaitGroup
	read.Go(func() { io.Copy(s, p.Stdout()) })
	t.Cleanup(func() {
		p.Close()
		p.Wait()
		read.Wait()
	})
	return s
}

// Write records what the terminal shows.
func (s *Shell) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Write(b)
}

// Shown returns what the terminal has shown.
func (s *Shell) Shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// Shows waits until the terminal has shown text.
func (s *Shell) Shows(t testing.TB, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("it shows %q", s.Shown())
		}
	}()
	WaitFor(t, "the terminal to show "+text, func() bool {
		return strings.Contains(s.Shown(), text)
	})
}

// Say writes to the pipe of commands.
func (s *Shell) Say(t testing.TB, text string) {
	t.Helper()
	_, err := io.WriteString(s.Commands(), text)
	require.NoError(t, err)
}

// Type writes to the terminal.
func (s *Shell) Type(t testing.TB, text string) {
	t.Helper()
	_, err := io.WriteString(s.Stdin(), text)
	require.NoError(t, err)
}

// Commands tests what a host does for Terminal.Commands.
func Commands(t *testing.T, h shellbox.Host) {
	t.Run("Line", func(t *testing.T) {
		s := StartShell(t, h)
		s.Say(t, "[ -t 0 ] || echo no $((40+2)); [ -t 1 ] && [ -t 2 ] && echo out $((40+3)); "+
			"echo by name $((40+4)) >/dev/tty; echo pid $$.\n")
		s.Shows(t, "no 42\n")
		s.Shows(t, "out 43\n")
		s.Shows(t, "by name 44\n")
		s.Shows(t, "pid "+strconv.Itoa(s.PID())+".\n")
		s.Say(t, "exit 7\n")
		status, err := s.Wait()
		require.NoError(t, err)
		require.Equal(t, 7, status.Code)
	})
	t.Run("TwoInputs", func(t *testing.T) {
		s := StartShell(t, h)
		s.Say(t, "read -r a </dev/tty; echo \"got <$a>\"; read -r b; echo \"said <$b>\"; stty "+
			"size </dev/tty\n")
		s.Type(t, "typed\n")
		s.Shows(t, "got <typed>")
		s.Say(t, "secret\n")
		s.Shows(t, "said <secret>")
		s.Shows(t, "24 80")
		require.NoError(t, s.Resize(25, 81))
		s.Type(t, "echo never\n") // no program reads the terminal
		// Wait for the echo, because the kernel may mix it with a program's output within a line.
		s.Shows(t, "echo never\n")
		s.Say(t, "echo last\n")
		s.Shows(t, "\nlast\n")
		require.NotContains(t, s.Shown(), "\nnever\n")
	})
	t.Run("LongLine", func(t *testing.T) {
		s := StartShell(t, h)
		s.Say(t, "x='"+strings.Repeat("0123456789", 20<<10)+"'; echo is ${#x}\n")
		s.Shows(t, "is 204800\n")
	})
	t.Run("End", func(t *testing.T) {
		s := StartShell(t, h, "sh", "-c", "cat; echo over")
		s.Say(t, "one\n")
		s.Shows(t, "one\n")
		require.NoError(t, s.Commands().Close())
		s.Shows(t, "over\n")
		status, err := s.Wait()
		require.NoError(t, err)
		require.Zero(t, status.Code)
		_, err = io.WriteString(s.Commands(), "x")
		require.Error(t, err)
	})
	blocked := func(t *testing.T, s *Shell, free func()) (int, error) {
		type result struct {
			n   int
			err error
		}
		done := make(chan result, 1)
		go func() {
			// This is more than all windows and pipes on the way hold.
			n, err := s.Commands().Write(make([]byte, 8<<20))
			done <- result{n, err}
		}()
		select {
		case r := <-done:
			t.Fatalf("wrote %d bytes, which no program reads: %v", r.n, r.err)
		case <-time.After(50 * time.Millisecond):
		}
		free()
		select {
		case r := <-done:
			return r.n, r.err
		case <-time.After(testenv.Limit):
			t.Fatal("the write is blocked")
			return 0, nil
		}
	}
	t.Run("CloseFreesWrite", func(t *testing.T) {
		s := StartShell(t, h, "sleep", "1000")
		_, err := blocked(t, s, func() { s.Close() })
		require.Error(t, err)
		s.Wait()
		WaitFor(t, "the hangup", func() bool { return !aliveOn(t, h, s.PID()) })
	})
	t.Run("EndFreesWrite", func(t *testing.T) {
		s := StartShell(t, h, "sleep", "1000")
		blocked(t, s, func() { killOn(t, h, s.PID()) })
	})
	t.Run("None", func(t *testing.T) {
		p, err := h.Start(t.Context(), Sh("true"))
		require.NoError(t, err)
		require.Nil(t, p.Commands())
		Finish(p)
	})
}

// aliveOn reports whether the host has a process with that id. A host may have process ids of its
// own.
func aliveOn(t testing.TB, h shellbox.Host, pid int) bool {
	p, ok := h.(hostapi.Processes)
	if !ok {
		return Alive(pid)
	}
	ps, err := p.Alive(t.Context(), pid)
	require.NoError(t, err)
	return len(ps) > 0
}

func killOn(t testing.TB, h shellbox.Host, pid int) {
	p, ok := h.(hostapi.Processes)
	if !ok {
		Kill(pid)
		return
	}
	_, err := p.Signal(t.Context(), []int{pid}, proc.SIGKILL)
	require.NoError(t, err)
}

// Discard tests Processes.Discard of a host.
func Discard(t *testing.T, h interface {
	shellbox.Host
	hostapi.Processes
}) {
	ctx := t.Context()
	for _, c := range []struct {
		name, modes, text string
		// The bounds of the count. While input is typed, the terminal itself may drop parts of
		// lines that look longer than it can hold.
		least, most int
	}{
		{"Nothing", "", "", 0, 0},
		{"Lines", "", "one\ntwo\n", 8, 8},
		{"Unfinished", "", "one\ntwo", 7, 7},
		{"Raw", "stty raw -echo </dev/tty; ", "one\ntwo", 7, 7},
		{"Full", "", strings.Repeat(strings.Repeat("x", 79)+"\n", 2000), 80 * 1000, 80 * 2000},
		{"FullRaw", "stty raw -echo </dev/tty; ", strings.Repeat("x", 100<<10), 100 << 10,
			100 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := StartShell(t, h)
			s.Say(t, c.modes+"echo up\n")
			s.Shows(t, "up\n")
			typed := make(chan struct{})
			go func() {
				defer close(typed)
				io.WriteString(s.Stdin(), c.text)
			}()
			n := 0
			drop := func() {
				dropped, err := h.Discard(ctx, s.Process)
				require.NoError(t, err)
				n += dropped
			}
			if len(c.text) > 4<<10 { // more than a terminal can hold
				WaitFor(t, "all to be typed while it is dropped", func() bool {
					drop()
					select {
					case <-typed:
						return true
					default:
						return false
					}
				})
			}
			<-typed
			drop()
			require.GreaterOrEqual(t, n, c.least)
			require.LessOrEqual(t, n, c.most)

			s.Say(t, "stty sane -onlcr </dev/tty; read -r a </dev/tty; echo \"got <$a>\"\n")
			s.Type(t, "later\n")
			s.Shows(t, "got <later>")
			n = 0
			drop()
			require.Zero(t, n)
		})
	}
	t.Run("Look", func(t *testing.T) {
		s := StartShell(t, h)
		s.Say(t, "A=1 exec sleep 1000\n")
		WaitFor(t, "the program", func() bool {
			_, env, err := h.Program(ctx, s.PID())
			require.NoError(t, err)
			return slices.Contains(env, "A=1")
		})
		look, err := h.Look(ctx, s.Process)
		require.NoError(t, err)
		require.False(t, look.Gone)
		require.NotZero(t, look.TTY)
		require.True(t, look.Modes.Known)
		killOn(t, h, s.PID())
		s.Wait()
		look, err = h.Look(ctx, s.Process)
		require.NoError(t, err)
		require.True(t, look.Gone)
	})
}
