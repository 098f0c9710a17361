package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// piped starts a job on pipes.
func (b *box) piped(t testing.TB, command string, opts ...sandbox.SessionOption) *job {
	t.Helper()
	return b.start(t, command, append(opts, sandbox.Pipes())...)
}

// stderr calls Stderr.
func (j *job) stderr(offset int64) string {
	j.t.Helper()
	data, err := within(j.b, j.t, "Stderr", func(ctx context.Context) ([]byte, error) {
		data, _, err := j.Stderr(ctx, offset)
		return data, err
	})
	require.NoErrorf(j.t, err, "Stderr(%d)", offset)
	return string(data)
}

// ended checks the Result of a job on pipes that has ended with one of codes.
func ended(t testing.TB, res *sandbox.Result, codes ...int) *sandbox.Result {
	t.Helper()
	require.Equal(t, sandbox.Exited, res.State, show(res))
	require.Contains(t, codes, res.ExitCode, show(res))
	return res
}

// endInput calls EndInput.
func (j *job) endInput() error {
	j.t.Helper()
	_, err := within(j.b, j.t, "EndInput", noResult(j.EndInput))
	return err
}

// whole reads all of an output.
func whole(read func(context.Context, int64) ([]byte, int64, error)) (string, error) {
	var all strings.Builder
	for offset := int64(0); ; {
		data, next, err := read(context.Background(), offset)
		if err != nil || len(data) == 0 {
			return all.String(), err
		}
		all.Write(data)
		offset = next
	}
}

// jobPipes has jobs on pipes.
func jobPipes(t *testing.T, b *box) {
	parallel(t, "Apart", func(t *testing.T) {
		j := b.piped(t, "echo a; echo b >&2; exit 3")
		same(t, "a\n", j.ends(3).Output)
		data, _ := j.logs(0)
		same(t, "a\n", data)
		same(t, "b\n", j.stderr(0))
		same(t, "\n", j.stderr(1))
		same(t, "a\n", ended(t, j.until(), 3).Output)
		ended(t, j.status(), 3)
	})
	parallel(t, "NoTerminal", func(t *testing.T) {
		j := b.piped(t, "! [ -t 0 ] && ! [ -t 1 ] && ! [ -t 2 ] && ! (: < /dev/tty) 2> /dev/null")
		j.ends(0)
	})
	parallel(t, "OnlyWithPipes", func(t *testing.T) {
		j := b.start(t, "read -r x")
		_, _, err := j.Stderr(t.Context(), 0)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorIs(t, j.EndInput(t.Context()), errors.ErrUnsupported)
		require.NoError(t, j.input("x\n"))
		j.ends(0)
		require.Error(t, errorOf(b.Open(t.Context(), sandbox.Pipes())))
		require.ErrorIs(t, errorOf(b.Background(t.Context(), ":", sandbox.Pipes(),
			sandbox.Like(b))), errors.ErrUnsupported)
		p := b.piped(t, "read -r x")
		require.ErrorIs(t, p.Resize(t.Context(), 10, 10), errors.ErrUnsupported)
		require.NoError(t, p.input("x\n"))
		p.ends(0)
	})
	pipedInput(t, b)
	pipedOutput(t, b)
	pipedEnds(t, b)
}

// pipedInput writes to jobs, and ends their input.
func pipedInput(t *testing.T, b *box) {
	parallel(t, "Input", func(t *testing.T) {
		j := b.piped(t, "cat; echo end >&2")
		for _, text := range []string{"one\n", "two\x03\x04\r\n", "no end"} {
			require.NoError(t, j.input(text)) // the keys of a terminal are bytes
			j.shown(text)
			running(t, j.status())
		}
		require.NoError(t, j.endInput())
		same(t, "one\ntwo\x03\x04\r\nno end", j.endsWithLog(0))
		same(t, "end\n", j.stderr(0))
		require.ErrorIs(t, j.input("x"), sandbox.ErrIdle)
		require.ErrorIs(t, j.endInput(), sandbox.ErrIdle)
	})
	parallel(t, "Sort", func(t *testing.T) {
		j := b.piped(t, "sort")
		require.NoError(t, j.input("b\na\n"))
		running(t, j.until(sandbox.Idle(100*time.Millisecond))) // it waits for the end
		require.NoError(t, j.endInput())
		require.NoError(t, j.endInput())
		same(t, "a\nb\n", j.ends(0).Output)
	})
	parallel(t, "AfterTheEnd", func(t *testing.T) {
		m := b.marker(t)
		j := b.piped(t, "cat; echo read; sleep "+string(m))
		require.NoError(t, j.endInput())
		j.shown("read\n")
		require.ErrorIs(t, j.input("x"), io.ErrClosedPipe)
		j.kill()
		b.gone(t, m)
	})
	parallel(t, "Much", func(t *testing.T) {
		n := b.suite.count(10_000_000)
		j := b.piped(t, "tr x y | wc -c; sleep 0.1; echo then >&2")
		for rest := n; rest > 0; rest -= 100_000 {
			require.NoError(t, j.input(strings.Repeat("x", 100_000)))
		}
		require.NoError(t, j.endInput())
		require.Equal(t, fmt.Sprint(n), strings.TrimSpace(j.ends(0).Output))
	})
	// The call ends, and what was to be written goes its way.
	parallel(t, "Unread", func(t *testing.T) {
		j := b.piped(t, "dd bs=1 count=1 2>/dev/null; until [ -e read ]; do sleep 0.02; done; "+
			"wc -c")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		written := make(chan error, 1)
		go func() {
			written <- errorOf(attempt("Job.Input", noResult(func(context.Context) error {
				return j.Input(ctx, strings.Repeat("x", 5_000_000))
			})))
		}()
		j.shown("x") // so it has begun to write
		cancel()
		require.ErrorIs(t, <-written, context.Canceled)
		b.script(t, `: > "$1/read"`, b.tmp)
		require.NoError(t, j.endInput())
		require.Equal(t, "4999999", strings.TrimSpace(j.ends(0).Output[1:]))
	})
	parallel(t, "InputClosed", func(t *testing.T) {
		j := b.piped(t, "exec <&-; echo closed; until [ -e dropped ]; do sleep 0.02; done; exit 4")
		j.shown("closed\n")
		for range 3 {
			require.NoError(t, j.input(strings.Repeat("x", 500_000)))
		}
		require.NoError(t, j.endInput())
		b.script(t, `: > "$1/dropped"`, b.tmp)
		j.ends(4)
	})
}

// endsWithLog waits for the job's end with that code, and returns its log.
func (j *job) endsWithLog(code int) string {
	j.t.Helper()
	j.ends(code)
	all, err := whole(j.Logs)
	require.NoError(j.t, err)
	return all
}

// pipedOutput has jobs that print much, or for others.
func pipedOutput(t *testing.T, b *box) {
	parallel(t, "MuchOfBoth", func(t *testing.T) {
		n := b.suite.count(50_000_000)
		j := b.piped(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; head -c %d /dev/zero | `+
			`tr '\0' y >&2; echo end`, n, n), sandbox.MaxLog(2<<20))
		require.True(t, strings.HasSuffix(j.ends(0).Output, "xend\n"))
		for name, c := range map[string]struct {
			read func(context.Context, int64) ([]byte, int64, error)
			size int64
			end  string
		}{"Logs": {j.Logs, int64(n) + 4, "end\n"}, "Stderr": {j.Stderr, int64(n), ""}} {
			data, next, err := c.read(t.Context(), 0)
			require.NoError(t, err)
			require.Len(t, data, 1<<20, name)
			require.Equal(t, c.size-1<<20, next, "%s begins with the last 2 MiB", name)
			data, next, err = c.read(t.Context(), next)
			require.NoError(t, err)
			require.Equal(t, c.size, next, name)
			require.True(t, strings.HasSuffix(string(data), c.end), name)
			_, _, err = c.read(t.Context(), c.size+1)
			require.ErrorAs(t, err, new(*sandbox.OffsetError), name)
		}
	})
	parallel(t, "LogTo", func(t *testing.T) {
		var both strings.Builder
		j := b.piped(t, "echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c", sandbox.LogTo(&both))
		j.ends(0)
		same(t, "a\nb\nc\n", both.String())
	})
	parallel(t, "Until", func(t *testing.T) {
		j := b.piped(t, "echo no >&2; echo one; read -r x; while :; do echo tick; sleep 0.05; "+
			"done & read -r x; kill $!; wait; echo two; read -r x; exit 4")
		res := j.until(matching("one\n"))
		runningWith(t, res, "one\n")
		require.NoError(t, j.input("x\n"))
		var tee strings.Builder
		typed := make(chan error, 1) // when the call is under way: a Tee gets what comes then
		w := &firstWrite{w: &tee, seen: sync.OnceFunc(func() {
			go func() { typed <- j.input("x\n") }()
		})}
		running(t, j.until(matching("two\n"), sandbox.Tee(w)))
		require.NoError(t, <-typed)
		require.Regexp(t, "^(tick\n)+two\n$", tee.String())
		require.NoError(t, j.input("x\n"))
		same(t, "", ended(t, j.until(), 4).Output)
	})
	// What asks a terminal gets no answer, and the text stays as it is.
	parallel(t, "Raw", func(t *testing.T) {
		j := b.piped(t, `printf '\033[6n\r\377\n'; head -c 1; echo end`)
		j.shown("\377\n")
		running(t, j.until(sandbox.Idle(50*time.Millisecond)))
		require.NoError(t, j.input("x"))
		same(t, "\x1b[6n\r\xff\nxend\n", j.endsWithLog(0))
	})
}

// pipedEnds has the ends of jobs.
func pipedEnds(t *testing.T, b *box) {
	for _, c := range []struct{ name, command, needs string }{
		{"Simple", "exec sleep {n}", ""},
		{"Children", "sh -c 'sleep {n} & sleep {n} & wait'", ""},
		{"Ignoring", `trap "" INT TERM HUP; sh -c 'sleep {n}; :'; sleep {n}`, ""},
		{"GroupsOfTheirOwn", `setsid sleep {n} & setsid sh -c "sleep {n}; :" & wait`, "setsid"},
	} {
		parallel(t, "Kill"+c.name, func(t *testing.T) {
			b.need(t, c.needs)
			m := b.marker(t)
			j := b.piped(t, strings.ReplaceAll(c.command, "{n}", string(m)))
			b.alive(t, m, min(2, strings.Count(c.command, "{n}")))
			require.ErrorIs(t, j.Forget(), sandbox.ErrBusy)
			j.kill()
			b.gone(t, m)
			j.ends(129, 137, 143)
			j.kill()
			require.NoError(t, j.Forget())
			_, _, err := j.Stderr(t.Context(), 0)
			require.ErrorIs(t, err, sandbox.ErrClosed)
			_, ok := b.Job(j.ID())
			require.False(t, ok)
		})
	}
	for name, sig := range map[string]syscall.Signal{"INT": syscall.SIGINT,
		"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP} {
		parallel(t, "Signal"+name, func(t *testing.T) {
			m := b.marker(t)
			j := b.piped(t, "sh -c 'echo up; exec sleep "+string(m)+"'; :")
			j.shown("up\n")
			signal := func() error {
				return errorOf(within(b, t, "Signal", noResult(func(ctx context.Context) error {
					return j.Signal(ctx, sig)
				})))
			}
			require.NoError(t, signal())
			j.ends(128 + int(sig))
			b.ended(t, m, "all that the signal was sent to")
			require.ErrorIs(t, signal(), os.ErrProcessDone)
		})
	}
	parallel(t, "Timeout", func(t *testing.T) {
		m := b.marker(t)
		j := b.piped(t, "sleep "+string(m))
		res, err := within(b, t, "Job.Until", j.untilCall(sandbox.Timeout(50*time.Millisecond)))
		require.ErrorIs(t, err, sandbox.ErrTimeout)
		ended(t, res, 129, 137, 143)
		b.gone(t, m)
	})
	parallel(t, "Codes", func(t *testing.T) {
		for command, code := range map[string]int{"": 0, "(a": 2, "nosuchcommand": 127,
			"kill -9 $$": 137, "exec sh -c 'exit 5'": 5, "set -e; false; echo no": 1} {
			b.piped(t, command).ends(code)
		}
	})
	// A process that holds an output open does not hold the job up.
	parallel(t, "LeftBehind", func(t *testing.T) {
		m := b.marker(t)
		j := b.piped(t, "sleep "+string(m)+" & echo x; exit 2")
		same(t, "x\n", j.ends(2).Output)
		require.NotEmpty(t, b.processes(t, m))
	})
	parallel(t, "Listed", func(t *testing.T) {
		j := b.piped(t, "cat")
		found, ok := b.Job(j.ID())
		require.True(t, ok)
		require.Equal(t, "cat", found.Command())
		require.NoError(t, found.EndInput(t.Context()))
		j.ends(0)
	})
	parallel(t, "NotStarted", func(t *testing.T) {
		_, err := b.tryBackground(t, "echo a", sandbox.Pipes(), sandbox.Dir(b.tmp+"/nothing"))
		require.ErrorContains(t, err, b.tmp+"/nothing")
		_, err = b.tryBackground(t, "echo \x00", sandbox.Pipes())
		require.ErrorContains(t, err, "NUL")
	})
}
