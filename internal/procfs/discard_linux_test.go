package procfs

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/programs"
)

// openTerminal returns both ends of a new terminal, and its number. What the terminal echoes is
// read and dropped.
func openTerminal(t *testing.T) (master, end *os.File, tty int) {
	t.Helper()
	master, end, err := programs.OpenTerminal(24, 80)
	require.NoError(t, err)
	st, err := end.Stat()
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(io.Discard, master)
	}()
	t.Cleanup(func() {
		end.Close()
		master.Close()
		<-done
	})
	return master, end, int(st.Sys().(*syscall.Stat_t).Rdev)
}

func termios(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	conn, err := f.SyscallConn()
	require.NoError(t, err)
	var m *unix.Termios
	require.NoError(t, conn.Control(func(fd uintptr) {
		m, err = unix.IoctlGetTermios(int(fd), unix.TCGETS)
	}))
	require.NoError(t, err)
	return *m
}

func TestDiscard(t *testing.T) {
	for _, c := range []struct {
		typed           string
		unread, dropped int
	}{
		{"", 0, 0},
		{"one\ntwo\n", 8, 8},
		{"unfinished", 0, 10},
		{"one\nunfin", 4, 9},
		{"\x04", 0, 1},
		{"a\x04", 1, 2},
		{"one\n\x04", 4, 5},
		{"wrong\x7f\x7f\x15right", 0, 5},
		{"lit\x16\x03eral\n", 9, 9},
		// more than the line discipline's buffer holds
		{strings.Repeat("0123456789abcde\n", 350), 4096, 5600},
	} {
		t.Run(fmt.Sprintf("%.20q", c.typed), func(t *testing.T) {
			master, end, tty := openTerminal(t)
			before := termios(t, end)
			for range 3 {
				_, err := io.WriteString(master, c.typed)
				require.NoError(t, err)
				if c.unread < 4096 {
					require.Equal(t, c.unread, readableBytes(tty))
				} else {
					// The kernel passes that much on in several pieces.
					require.Eventually(t, func() bool {
						n := readableBytes(tty)
						return n >= c.unread-64 && n <= c.unread
					}, testenv.Limit, time.Millisecond)
				}
				require.Equal(t, c.dropped, Discard(tty))
				require.Equal(t, before, termios(t, end))
				require.Zero(t, Discard(tty))
			}
			_, err := io.WriteString(master, "next\n")
			require.NoError(t, err)
			got := make([]byte, 100)
			n, err := end.Read(got)
			require.NoError(t, err)
			require.Equal(t, "next\n", string(got[:n]))
		})
	}
	require.Zero(t, Discard(0))
	require.Zero(t, Discard(34816+1<<19))
}

func TestDiscardRaw(t *testing.T) {
	master, end, tty := openTerminal(t)
	conn, err := end.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, conn.Control(func(fd uintptr) {
		m, _ := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		m.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
		unix.IoctlSetTermios(int(fd), unix.TCSETS, m)
	}))
	before := termios(t, end)
	io.WriteString(master, "abc\x03")
	require.Equal(t, 4, Discard(tty))
	require.Equal(t, before, termios(t, end))
}

// A program that waits for input gets neither what is dropped nor an end of the input.
func TestDiscardWakesNobody(t *testing.T) {
	for _, c := range []waitCase{
		{name: "read", command: "bash -c 'IFS= read -r x; echo \"got $x\" >out'"},
		{name: "cat", command: "cat >out"},
		{name: "select", needs: python, command: readUntilLine("select.select([0],[],[])")},
		{name: "poll", needs: python, command: readUntilLine(
			"p=select.poll(); p.register(0,1); p.poll()")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != "" {
				need(t, c.needs)
			}
			s := startSession(t)
			s.runAndAwait(c)
			dir, _ := Program(s.pid)
			tty := Look(s.pid).TTY
			for range 300 {
				_, err := s.terminal.WriteString("unfinished")
				require.NoError(t, err)
				Discard(tty)
			}
			time.Sleep(50 * time.Millisecond)
			s.until(func(l proc.Look) bool { return len(l.Waits) == 1 && l.Waits[0].Modes == line })
			s.terminal.WriteString("answer\n\x04")
			s.idle()
			got, err := os.ReadFile(dir + "/out")
			require.NoError(t, err)
			given := strings.Split(strings.TrimSpace(strings.TrimPrefix(string(got), "got ")), "|")
			require.Equal(t, "answer", given[len(given)-1])
			require.Less(t, len(given), 4, "a program that polls is woken rarely: %q", given)
		})
	}
}

// readUntilLine returns a command that waits for input with the Python statement wait and reads,
// until it has a line. Then it writes all that it has read to the file out. Once in 10,000 times
// Linux may report input where there is none (BUGS in select(2)). The read that follows may then
// come while a later Discard has ended canonical mode.
func readUntilLine(wait string) string {
	return py("import os,select\nos.set_blocking(0,False); got=[]\nwhile not (got and " +
		"got[-1].endswith(b'\\n')):\n  " + wait + "\n  try: got.append(os.read(0,99))\n  except " +
		"BlockingIOError: pass\nopen('out','wb').write(b'|'.join(got))")
}

func BenchmarkDiscard(b *testing.B) {
	_, end, err := programs.OpenTerminal(24, 80)
	require.NoError(b, err)
	st, err := end.Stat()
	require.NoError(b, err)
	defer end.Close()
	tty := int(st.Sys().(*syscall.Stat_t).Rdev)
	for b.Loop() {
		Discard(tty)
	}
}

// readableBytes returns how many bytes a program that read the terminal would get at once. In
// canonical mode these are complete lines only.
func readableBytes(tty int) (n int) {
	withTerminal(tty, func(fd int) {
		processTyped(fd)
		n, _ = unix.IoctlGetInt(fd, unix.TIOCINQ)
	})
	return n
}
