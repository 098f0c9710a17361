package sandboxtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// run: programs without terminal, shell and state.
func (s *suite) run(t *testing.T) {
	b := s.box(t)
	t.Run("38_Streams", func(t *testing.T) { streams(t, b) })
	t.Run("38_Stdin", func(t *testing.T) { stdins(t, b) })
	t.Run("38_Program", func(t *testing.T) { programs(t, b) })
	t.Run("38_Cancel", func(t *testing.T) { runCancels(t, b) })
	t.Run("38_Writers", func(t *testing.T) { runWriters(t, b) })
	t.Run("38_Environment", func(t *testing.T) { environments(t, b) })
	t.Run("39_Errors", func(t *testing.T) { runErrors(t, b) })
	t.Run("39_AtOnce", func(t *testing.T) {
		t.Parallel()
		errs := make(chan error)
		n := s.count(200)
		for i := range n {
			go func() {
				var stdout, stderr bytes.Buffer
				code, err := attempt("Run", func(ctx context.Context) (int, error) {
					return b.Run(ctx, &sandbox.Cmd{
						Args: []string{"sh", "-c", `cat; echo "e$1" >&2; exit "$2"`, "sh",
							fmt.Sprint(i), fmt.Sprint(i % 100)},
						Stdin: strings.NewReader(lines(i, i+100)), Stdout: &stdout, Stderr: &stderr,
					})
				})
				if err == nil && (code != i%100 || stdout.String() != lines(i, i+100) ||
					stderr.String() != fmt.Sprintf("e%d\n", i)) {
					err = fmt.Errorf("the %dth: code %d, stdout %s, stderr %s", i, code,
						brief(stdout.String()), brief(stderr.String()))
				}
				errs <- err
			}()
		}
		var all []error
		for range n {
			all = append(all, <-errs)
		}
		require.NoError(t, errors.Join(all...))
	})
}

// cmd is Run, which may not fail.
func (b *box) cmd(t testing.TB, cmd *sandbox.Cmd) (code int) {
	t.Helper()
	code, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
		return b.Run(ctx, cmd)
	})
	require.NoErrorf(t, err, "Run(%q)", cmd.Args)
	return code
}

func streams(t *testing.T, b *box) {
	t.Parallel()
	var all strings.Builder
	for i := range 256 {
		all.WriteByte(byte(i))
	}
	t.Run("ApartAndExact", func(t *testing.T) {
		t.Parallel()
		var stdout, stderr bytes.Buffer
		code := b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c",
			"cat; printf 'e\\r\\n\\033[31m\\377' >&2; exit 4"},
			Stdin: strings.NewReader(all.String()), Stdout: &stdout, Stderr: &stderr})
		require.Equal(t, 4, code)
		same(t, all.String(), stdout.String())
		same(t, "e\r\n\x1b[31m\xff", stderr.String())
	})
	t.Run("OneWriterForBoth", func(t *testing.T) {
		t.Parallel()
		var both bytes.Buffer
		script := `i=0; while [ $i -lt 1000 ]; do echo "o $i"; echo "e $i" >&2; i=$((i+1)); done`
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", script}, Stdout: &both,
			Stderr: &both}))
		var want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&want, "o %d\ne %d\n", i, i)
		}
		same(t, want.String(), both.String())
	})
	t.Run("WritersThatDoNotCompare", func(t *testing.T) { // are two
		t.Parallel()
		var mu sync.Mutex
		var all strings.Builder
		w := writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return all.Write(p)
		})
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", "echo o; echo e >&2"},
			Stdout: w, Stderr: w}))
		require.Contains(t, all.String(), "o\n")
		require.Contains(t, all.String(), "e\n")
	})
	t.Run("Discarded", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, 3, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c",
			"seq 1 100000; seq 1 100000 >&2; exit 3"}}))
	})
	t.Run("LargeOnBoth", func(t *testing.T) {
		t.Parallel()
		var stdout, stderr bytes.Buffer
		code := b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c",
			"seq 1 300000 & seq 1 300000 >&2; wait"}, Stdout: &stdout, Stderr: &stderr})
		require.Zero(t, code)
		same(t, lines(1, 300_000), stdout.String())
		same(t, lines(1, 300_000), stderr.String())
	})
	t.Run("AsItComes", func(t *testing.T) {
		t.Parallel()
		in, answer := io.Pipe()
		w := &watcher{text: "one\n", seen: func() {
			go func() { io.WriteString(answer, "two\n"); answer.Close() }()
		}}
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", "echo one; cat"},
			Stdin: in, Stdout: w}))
		same(t, "one\ntwo\n", w.buf.String())
	})
	t.Run("Tail", func(t *testing.T) { // what came just before the end is not lost
		t.Parallel()
		for i := range b.suite.count(100) {
			var stdout bytes.Buffer
			require.Equal(t, 137, b.cmd(t, &sandbox.Cmd{
				Args:   []string{"sh", "-c", fmt.Sprintf("seq 1 %d; kill -9 $$", 1000+i)},
				Stdout: &stdout}))
			same(t, lines(1, 1000+i), stdout.String())
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func stdins(t *testing.T, b *box) {
	t.Parallel()
	t.Run("None", func(t *testing.T) {
		t.Parallel()
		var stdout bytes.Buffer
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"cat"}, Stdout: &stdout}))
		require.Empty(t, stdout.String())
	})
	t.Run("Empty", func(t *testing.T) {
		t.Parallel()
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader("")}))
	})
	t.Run("50MiB", func(t *testing.T) {
		t.Parallel()
		n := int64(b.suite.count(50 << 20))
		source := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), n) }
		want, got := sha256.New(), sha256.New()
		io.Copy(want, source())
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"cat"}, Stdin: source(), Stdout: got}))
		require.Equal(t, want.Sum(nil), got.Sum(nil), "SHA-256 of what went in and came out")
	})
	t.Run("NotRead", func(t *testing.T) { // no hang and no error
		t.Parallel()
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"true"},
			Stdin: strings.NewReader(strings.Repeat("x", 10<<20))}))
		var stdout bytes.Buffer
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"head", "-n", "1"},
			Stdin: strings.NewReader(lines(1, 1_000_000)), Stdout: &stdout}))
		same(t, "1\n", stdout.String())
	})
	t.Run("ThatFails", func(t *testing.T) { // is no end of the input
		t.Parallel()
		dir := fmt.Sprintf("%s/stdin%d", b.tmp, b.count.Add(1))
		b.script(t, `mkdir "$1"`, dir)
		broken := errors.New("the download broke off")
		for name, rest := range map[string]io.Reader{
			"error": iotest.ErrReader(broken),
			"panic": readerFunc(func([]byte) (int, error) { panic("no luck") }),
		} {
			in := io.MultiReader(strings.NewReader("half of it"), rest)
			code, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
				return b.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "cat; : >all"}, Dir: dir,
					Stdin: in})
			})
			if name == "error" {
				require.ErrorIs(t, err, broken)
			} else {
				require.ErrorContains(t, err, "Cmd.Stdin panicked: no luck")
			}
			require.NotErrorIs(t, err, context.Canceled)
			require.NotZero(t, code)
		}
		same(t, "", b.script(t, `ls "$1"`, dir))
	})
	t.Run("ThatBlocks", func(t *testing.T) { // does not keep Run from returning
		t.Parallel()
		in, end := io.Pipe()
		defer end.Close()
		require.Equal(t, 3, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", "exit 3"}, Stdin: in}))
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func programs(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Arguments", func(t *testing.T) { // no shell sees them
		t.Parallel()
		args := []string{"", "a b", "it's", `"`, "$HOME", "`x`", "$(x)", "*", "a\nb\n", `\`, "-n",
			"~", ";", "é\xff", "!", strings.Repeat("x", 100_000)}
		var stdout bytes.Buffer
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: append([]string{"printf", `<%s>\n`}, args...),
			Stdout: &stdout}))
		same(t, "<"+strings.Join(args, ">\n<")+">\n", stdout.String())
	})
	t.Run("Dir", func(t *testing.T) {
		t.Parallel()
		var stdout bytes.Buffer
		dir := b.tmp + "/it's a\n$dir"
		b.script(t, `mkdir "$1"`, dir)
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"pwd"}, Dir: dir, Stdout: &stdout}))
		same(t, dir+"\n", stdout.String())
		stdout.Reset()
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", "pwd"}, Stdout: &stdout}))
		same(t, b.home+"\n", stdout.String())
		stdout.Reset()
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"./tool"},
			Dir: b.tmp + "/" + b.tool(t), Stdout: &stdout}))
		same(t, "tool\n", stdout.String())
	})
	t.Run("Env", func(t *testing.T) {
		t.Parallel()
		var stdout bytes.Buffer
		value := "a=b 'c' \"d\" $HOME \\\nsecond é"
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c",
			`printf '%s\n' "$A" "$B" "<${EMPTY-unset}>" "${PATH:+path}"`},
			Env: []string{"A=" + value, "B=1", "B=2", "EMPTY="}, Stdout: &stdout}))
		same(t, value+"\n2\n<>\npath\n", stdout.String())
	})
	t.Run("Path", func(t *testing.T) { // as given in Env
		t.Parallel()
		var stdout bytes.Buffer
		dir := b.tmp + "/" + b.tool(t)
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"tool"},
			Env: []string{"PATH=" + dir + ":/bin:/usr/bin"}, Stdout: &stdout}))
		same(t, "tool\n", stdout.String())
	})
	t.Run("NoTerminal", func(t *testing.T) {
		t.Parallel()
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c",
			"! [ -t 0 ] && ! [ -t 1 ] && ! [ -t 2 ]"}}))
		require.NotZero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", ": < /dev/tty"}}))
	})
	t.Run("NoState", func(t *testing.T) {
		t.Parallel()
		sh := &shell{Session: b.Sandbox, b: b, t: t}
		sh.output("export FROM_MAIN=1; cd /")
		var stdout bytes.Buffer
		require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c",
			`echo "<$FROM_MAIN> $PWD"`}, Stdout: &stdout}))
		same(t, "<> "+b.home+"\n", stdout.String())
		sh.output("unset FROM_MAIN; cd " + quote(b.home))
	})
	t.Run("WhileASessionIsBusy", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(ask), sandbox.Line)
		require.Equal(t, 5, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", "exit 5"}}))
		exited(t, sh.input("ann\n"), 0)
		sh.lives()
	})
	t.Run("Statuses", func(t *testing.T) {
		t.Parallel()
		for command, want := range map[string]int{"exit 0": 0, "exit 1": 1, "exit 126": 126,
			"exit 127": 127, "exit 255": 255, "kill -9 $$": 137, "kill -TERM $$": 143,
			"kill -HUP $$": 129, "kill -INT $$": 130} {
			require.Equal(t, want, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c", command}}),
				command)
		}
	})
	// does not keep Run from returning, for ever at least
	t.Run("OutputHeldOpenByAnother", func(t *testing.T) {
		t.Parallel()
		m := b.marker(t)
		var stdout bytes.Buffer
		code, _ := within(b, t, "Run", func(ctx context.Context) (int, error) {
			return b.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c",
				"sleep " + string(m) + " & echo hi; exit 3"}, Stdout: &stdout})
		})
		require.Equal(t, 3, code)
		require.Equal(t, "hi\n", stdout.String())
		b.slay(t, m)
	})
}

// tool makes a program that prints "tool", and returns its directory in b's.
func (b *box) tool(t testing.TB) string {
	t.Helper()
	dir := fmt.Sprintf("bin%d", b.count.Add(1))
	b.script(t, `mkdir "$1" && cd "$1" && printf '#!/bin/sh\necho tool\n' > tool && chmod +x tool && echo x > data`, b.tmp+"/"+dir)
	return dir
}

func runCancels(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []named{
		{"Program", "sleep {n}"},
		{"Tree", "sleep {n} & sh -c 'sleep {n}; :' & wait"},
		{"Ignoring", `trap "" INT TERM HUP; sleep {n}; :`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := b.marker(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var ran atomic.Bool
			stdout := &watcher{text: "before\n", seen: func() {
				go func() { // the marker alone is in the shell's own arguments
					for end := time.Now().Add(grace); time.Now().Before(end) &&
						!ran.Load(); time.Sleep(20 * time.Millisecond) {
						ran.Store(found(b, m))
					}
					cancel()
				}()
			}}
			_, err := within(b, t, "Run", func(context.Context) (int, error) {
				return b.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c",
					"echo before; " + strings.ReplaceAll(c.command, "{n}", string(m))},
					Stdout: stdout})
			})
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, ran.Load(), "it was not found among the processes")
			require.Equal(t, "before\n", stdout.buf.String())
			b.gone(t, m)
		})
	}
}

// found is processes (see there) for goroutines that are not the test's.
func found(b *box, m marker) bool {
	var stdout bytes.Buffer
	_, err := b.Run(context.Background(), &sandbox.Cmd{
		Args:  []string{"sh", "-c", "grep -l -f - /proc/[0-9]*/cmdline 2>/dev/null"},
		Stdin: strings.NewReader(string(m) + "\n"), Stdout: &stdout})
	return err != nil || stdout.Len() > 0
}

func runErrors(t *testing.T, b *box) {
	t.Parallel()
	run := func(t *testing.T, cmd *sandbox.Cmd) (int, error) {
		return within(b, t, "Run", func(ctx context.Context) (int, error) {
			return b.Run(ctx, cmd)
		})
	}
	dir := b.tmp + "/" + b.tool(t)
	for _, program := range []string{"nosuchprogram", "./nosuchprogram", "/no/such/program",
		"it's not there", "-x"} {
		t.Run(fmt.Sprintf("%q", program), func(t *testing.T) {
			code, err := run(t, &sandbox.Cmd{Args: []string{program, "x"}, Dir: dir})
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.ErrorContains(t, err, program)
			require.Equal(t, 127, code)
		})
	}
	t.Run("NotExecutable", func(t *testing.T) {
		for _, program := range []string{dir + "/data", "./data"} {
			code, err := run(t, &sandbox.Cmd{Args: []string{program}, Dir: dir})
			require.ErrorIs(t, err, fs.ErrPermission)
			require.Equal(t, 126, code)
		}
	})
	t.Run("Dir", func(t *testing.T) {
		_, err := run(t, &sandbox.Cmd{Args: []string{"true"}, Dir: dir + "/nothing"})
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, dir+"/nothing")
		_, err = run(t, &sandbox.Cmd{Args: []string{"true"}, Dir: dir + "/data"})
		require.Error(t, err)
	})
	t.Run("NoArguments", func(t *testing.T) {
		_, err := run(t, &sandbox.Cmd{})
		require.Error(t, err)
	})
	t.Run("A127OfItsOwn", func(t *testing.T) { // is data
		code, err := run(t, &sandbox.Cmd{Args: []string{"sh", "-c", "nosuchprogram 2>/dev/null"}})
		require.NoError(t, err)
		require.Equal(t, 127, code)
	})
	t.Run("BoxLives", func(t *testing.T) { b.open(t).lives() })
}
