package sandboxtest

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// runStarted has programs that are told of by Cmd.Started, and signalled.
func runStarted(t *testing.T, b *box) {
	parallel(t, "PID", func(t *testing.T) {
		var out strings.Builder
		var told string
		var process sandbox.Process
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{Args: inShell("echo $$"), Stdout: &out,
			Started: func(p sandbox.Process) { told, process = lines(p.PID(), p.PID()), p }}))
		same(t, told, out.String())
		require.ErrorIs(t, process.Signal(t.Context(), syscall.SIGTERM), os.ErrProcessDone)
		require.ErrorIs(t, process.Resize(t.Context(), 10, 10), os.ErrProcessDone)
	})
	for _, c := range []struct {
		name, script string
		sig          syscall.Signal
		code         int
		out          string
	}{
		{"Trap", "trap 'echo got; exit 7' TERM; echo up; while :; do sleep 0.02; done",
			syscall.SIGTERM, 7, "up\ngot\n"},
		{"Group", "echo up; sleep 600; echo never", syscall.SIGTERM, 143, "up\n"},
		{"Kill", "trap '' TERM; echo up; sleep 600", syscall.SIGKILL, 137, "up\n"},
	} {
		parallel(t, c.name, func(t *testing.T) {
			started := make(chan sandbox.Process, 1)
			w := &watcher{text: "up\n"}
			up := make(chan struct{})
			w.seen = func() { close(up) }
			go func() {
				<-up
				(<-started).Signal(context.Background(), c.sig)
			}()
			require.Equal(t, c.code, b.mustRun(t, &sandbox.Cmd{Args: inShell(c.script), Stdout: w,
				Started: func(p sandbox.Process) { started <- p }}))
			same(t, c.out, w.buf.String())
		})
	}
	parallel(t, "Panics", func(t *testing.T) {
		var out strings.Builder
		code, err := b.tryRun(t, &sandbox.Cmd{Args: inShell("echo out; exit 3"), Stdout: &out,
			Started: func(sandbox.Process) { panic("oops") }})
		require.ErrorContains(t, err, "Cmd.Started panicked: oops")
		require.Equal(t, 3, code)
		same(t, "out\n", out.String())
	})
	parallel(t, "Blocks", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended, release := make(chan error, 1), make(chan struct{})
		defer close(release)
		_, err := attempt("Run", func(context.Context) (int, error) {
			return b.Run(ctx, &sandbox.Cmd{Args: inShell("exec sleep 600"),
				Started: func(p sandbox.Process) {
					ended <- p.Resize(ctx, 24, 80)
					cancel()
					<-release
				}})
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, <-ended, "no terminal")
	})
}

// runTerminal has programs on a terminal.
func runTerminal(t *testing.T, b *box) {
	parallel(t, "Exact", func(t *testing.T) {
		var out, errs bytes.Buffer
		require.Equal(t, 5, b.mustRun(t, &sandbox.Cmd{
			Terminal: &sandbox.Terminal{Rows: 33, Cols: 77},
			Args:     inShell(`stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && tty >/dev/tty && printf '\033[31m\377' >&2; exit 5`),
			Stdout:   &out, Stderr: &errs}))
		size, rest, _ := strings.Cut(out.String(), "\n")
		same(t, "33 77", size)
		name, rest, _ := strings.Cut(rest, "\n")
		require.Regexp(t, "^/dev/[a-z0-9/]+$", name)
		same(t, "\x1b[31m\xff", rest)
		require.Empty(t, errs.String())
	})
	parallel(t, "DefaultSize", func(t *testing.T) {
		same(t, "24 80\n", b.stdout(t, &sandbox.Cmd{Terminal: &sandbox.Terminal{},
			Args: []string{"stty", "size"}}))
		_, err := b.tryRun(t, &sandbox.Cmd{Terminal: &sandbox.Terminal{Rows: -1},
			Args: []string{"true"}})
		require.ErrorContains(t, err, "Cmd.Terminal")
	})
	// Keys are typed as they are: the end of the reader is not the program's.
	parallel(t, "Keys", func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		w := &watcher{text: "? "}
		w.seen = func() { go io.WriteString(keys, "ann\n\x04") }
		require.Equal(t, 0, b.mustRun(t, &sandbox.Cmd{Terminal: &sandbox.Terminal{}, Stdin: in,
			Args:   inShell(`printf '? '; read a; echo "<$a>"; cat; echo over`),
			Stdout: w}))
		same(t, "? ann\n<ann>\nover\n", w.buf.String())
	})
	parallel(t, "Interrupt", func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		w := &watcher{text: "up\n"}
		w.seen = func() { go io.WriteString(keys, "\x03") }
		require.Equal(t, 130, b.mustRun(t, &sandbox.Cmd{Terminal: &sandbox.Terminal{}, Stdin: in,
			Args: inShell(`echo up; exec sleep 600`), Stdout: w}))
	})
	parallel(t, "Resize", func(t *testing.T) {
		var process sandbox.Process
		resized := make(chan error, 1)
		w := &watcher{text: "up\n"}
		w.seen = func() {
			go func() { resized <- process.Resize(context.Background(), 50, 132) }()
		}
		require.Equal(t, 0, b.mustRun(t, &sandbox.Cmd{Terminal: &sandbox.Terminal{}, Stdout: w,
			Args:    inShell(`echo up; until [ "$(stty size)" = "50 132" ]; do sleep 0.02; done`),
			Started: func(p sandbox.Process) { process = p }}))
		require.NoError(t, <-resized)
	})
	parallel(t, "Cancel", func(t *testing.T) {
		m := b.marker(t)
		ctx, cancel := context.WithCancel(t.Context())
		w := &watcher{text: "up\n", seen: cancel}
		_, err := attempt("Run", func(context.Context) (int, error) {
			return b.Run(ctx, &sandbox.Cmd{Terminal: &sandbox.Terminal{}, Stdout: w,
				Args: inShell(`trap '' HUP INT TERM; (trap '' HUP; sleep ` + string(m) +
					`) & echo up; wait; sleep ` + string(m))})
		})
		require.ErrorIs(t, err, context.Canceled)
		b.gone(t, m)
	})
}
