package sandboxtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A job is a background job under test.
type job struct {
	sandbox.Job
	b *box
	t testing.TB
}

// start is Background, in b's directory for cases.
func (b *box) start(t testing.TB, command string, opts ...sandbox.SessionOption) *job {
	t.Helper()
	j, err := within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
		return b.Background(ctx, command, append([]sandbox.SessionOption{sandbox.Dir(b.tmp)},
			opts...)...)
	})
	require.NoError(t, err, "Background(%s)", brief(command))
	t.Cleanup(func() { attempt("Kill", empty(j.Kill)) })
	return &job{j, b, t}
}

// logs is Logs from offset on.
func (j *job) logs(offset int64) (string, int64) {
	j.t.Helper()
	var next int64
	data, err := within(j.b, j.t, "Logs", func(ctx context.Context) (data []byte, err error) {
		data, next, err = j.Logs(ctx, offset)
		return data, err
	})
	require.NoErrorf(j.t, err, "Logs(%d)", offset)
	require.Equalf(j.t, offset+int64(len(data)), next, "next of Logs(%d), which returned %d bytes",
		offset, len(data))
	return string(data), next
}

// shown waits until the logs hold text, and returns them.
func (j *job) shown(text string) (all string) {
	j.t.Helper()
	j.b.eventually(j.t, func() bool {
		all, _ = j.logs(0)
		return strings.Contains(all, text)
	}, "%q in the logs of %s", text, j.Command())
	return all
}

// ends waits for the job's end with a code.
func (j *job) ends(codes ...int) *sandbox.Result {
	j.t.Helper()
	res, err := within(j.b, j.t, "Job.Wait", j.Wait)
	require.NoError(j.t, err, "Wait")
	require.Equalf(j.t, sandbox.Exited, res.State, "%s", show(res))
	require.Containsf(j.t, codes, res.ExitCode, "%s", show(res))
	if len(res.Output) < 1000 {
		require.Zerof(j.t, res.Omitted, "Omitted: %s", show(res))
	}
	select {
	case <-j.Done():
	default:
		j.t.Fatal("Wait has returned, and Done is not closed")
	}
	return res
}

// kill is Kill.
func (j *job) kill() {
	j.t.Helper()
	_, err := within(j.b, j.t, "Kill", empty(func(ctx context.Context) error {
		return j.Kill(ctx)
	}))
	require.NoError(j.t, err, "Kill")
}

func logs(t *testing.T, b *box) {
	t.Parallel()
	t.Run("WhileItWritesAndAfter", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo line $i; [ $((i % 30)) "+
			"= 0 ] && sleep 0.05; done; exit 3")
		want := repeat("line %d\n", 300)
		read := func() string { // on and on, as it grows
			var all strings.Builder
			var offset int64
			for ended := false; ; {
				data, next, err := j.Logs(context.Background(), offset)
				if err != nil {
					return err.Error()
				}
				all.Write(data)
				if len(data) == 0 && ended {
					return all.String()
				}
				offset = next
				select {
				case <-j.Done():
					ended = true
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
		var wg sync.WaitGroup
		got := make([]string, 3)
		for i := range got { // each at an offset of its own
			wg.Add(1)
			go func() {
				defer wg.Done()
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				got[i] = read()
			}()
		}
		wg.Wait()
		for _, g := range got {
			same(t, want, g)
		}
		same(t, want, j.ends(3).Output)
		for range 2 { // again, after its end
			all, next := j.logs(0)
			same(t, want, all)
			data, _ := j.logs(next)
			require.Empty(t, data)
			data, _ = j.logs(next - 9)
			same(t, "line 300\n", data)
			data, _ = j.logs(7)
			same(t, want[7:], data)
		}
	})
	t.Run("NothingNewDoesNotWait", func(t *testing.T) {
		t.Parallel()
		m := b.marker(t)
		j := b.start(t, "echo ready; sleep "+string(m))
		_, next := int64(0), int64(len(j.shown("ready\n")))
		data, _ := j.logs(next)
		require.Empty(t, data)
		j.kill()
		b.gone(t, m)
	})
	t.Run("BeyondTheEnd", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "echo a")
		j.ends(0)
		for _, offset := range []int64{3, 1 << 40, -1} {
			_, err := within(b, t, "Logs", func(ctx context.Context) ([]byte, error) {
				data, _, err := j.Logs(ctx, offset)
				return data, err
			})
			require.Errorf(t, err, "Logs(%d) of 2 bytes", offset)
		}
	})
	t.Run("Raw", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, `printf '\033[31mred\033[0m\r50%%\r100%%\n\377\376\n'; printf 'no end'`)
		res := j.ends(0)
		all, _ := j.logs(0)
		same(t, "\x1b[31mred\x1b[0m\r50%\r100%\n\xff\xfe\nno end", all)
		same(t, "100%\n\ufffd\nno end", res.Output)
	})
	t.Run("AtMostAMebibyte", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, `head -c 3000000 /dev/zero | tr '\0' x`)
		j.ends(0)
		data, _ := j.logs(0)
		require.LessOrEqual(t, len(data), 1<<20)
		require.NotEmpty(t, data)
	})
}

// unread: a job may print for hours before anyone looks; it neither stops nor is it kept in memory.
func unread(t *testing.T, b *box) {
	t.Parallel()
	n := b.suite.count(100_000_000)
	j := b.start(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo end`, n))
	res := j.ends(0)
	require.True(t, strings.HasSuffix(res.Output, "xend\n"), show(res))
	require.EqualValues(t, n+4, int64(len(res.Output))+res.Omitted, "bytes kept and omitted")
	var offset, size int64
	for {
		data, next := j.logs(offset)
		if len(data) == 0 {
			break
		}
		size += int64(len(data))
		if rest := strings.TrimLeft(data, "x"); rest != "" {
			require.Equal(t, "end\n", rest, "at offset %d", offset)
		}
		offset = next
	}
	require.EqualValues(t, n+4, size, "bytes of the logs")
}

func jobInput(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Answered", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, `printf 'name? '; read -r x; echo "got $x"; exit 3`)
		j.shown("name? ")
		_, err := within(b, t, "Job.Input", empty(func(ctx context.Context) error {
			return j.Input(ctx, "ann\n")
		}))
		require.NoError(t, err)
		same(t, "name? ann\ngot ann\n", j.ends(3).Output)
		_, err = within(b, t, "Job.Input", empty(func(ctx context.Context) error {
			return j.Input(ctx, "x\n")
		}))
		require.ErrorIs(t, err, sandbox.ErrIdle)
	})
	t.Run("OnATerminal", func(t *testing.T) {
		t.Parallel()
		b.start(t, "[ -t 0 ] && [ -t 1 ] && [ -t 2 ]").ends(0)
	})
	t.Run("Keys", func(t *testing.T) {
		t.Parallel()
		j := b.start(t, "echo ready; exec cat")
		j.shown("ready\n")
		for _, text := range []string{"one\n", "two\n", "\x04"} {
			_, err := within(b, t, "Job.Input", empty(func(ctx context.Context) error {
				return j.Input(ctx, text)
			}))
			require.NoError(t, err)
		}
		out := j.ends(0).Output
		require.Equal(t, 2, strings.Count(out, "one\n"), "echo and answer: %s", brief(out))
		require.Equal(t, 2, strings.Count(out, "two\n"), "echo and answer: %s", brief(out))
	})
}
