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

// run calls Run: programs without a terminal, a shell and state.
func (s *suite) run(t *testing.T) {
	b := s.box(t)
	b.sections(t, []section{
		{"38_Streams", streams},
		{"38_Stdin", stdins},
		{"38_Program", programs},
		{"38_Cancel", runCancels},
		{"38_Writers", runWriters},
		{"38_Environment", environments},
		{"38_Started", runStarted},
		{"38_Terminal", runTerminal},
		{"39_Errors", runErrors},
	})
	parallel(t, "39_AtOnce", func(t *testing.T) {
		require.NoError(t, together(s.count(200), func(i int) error {
			var stdout, stderr bytes.Buffer
			code, err := attempt("Run", func(ctx context.Context) (int, error) {
				return b.Run(ctx, &sandbox.Cmd{
					Args:  inShell(fmt.Sprintf("cat; echo e%d >&2; exit %d", i, i%100)),
					Stdin: strings.NewReader(lines(i, i+100)), Stdout: &stdout, Stderr: &stderr,
				})
			})
			if err == nil && (code != i%100 || stdout.String() != lines(i, i+100) ||
				stderr.String() != fmt.Sprintf("e%d\n", i)) {
				err = fmt.Errorf("code %d, stdout %s, stderr %s", code, brief(stdout.String()),
					brief(stderr.String()))
			}
			return err
		}))
	})
}

// streams has programs that print to stdout and stderr.
func streams(t *testing.T, b *box) {
	parallel(t, "ApartAndExact", func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 4, b.mustRun(t, &sandbox.Cmd{
			Args:  inShell("cat; printf 'e\\r\\n\\033[31m\\377' >&2; exit 4"),
			Stdin: strings.NewReader(allBytes), Stdout: &stdout, Stderr: &stderr}))
		same(t, allBytes, stdout.String())
		same(t, "e\r\n\x1b[31m\xff", stderr.String())
	})
	parallel(t, "OneWriterForBoth", func(t *testing.T) {
		var both bytes.Buffer
		script := `i=0; while [ $i -lt 1000 ]; do echo "o $i"; echo "e $i" >&2; i=$((i+1)); done`
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{Args: inShell(script), Stdout: &both,
			Stderr: &both}))
		var want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&want, "o %d\ne %d\n", i, i)
		}
		same(t, want.String(), both.String())
	})
	// The operator == would panic for these writers, so they count as two.
	parallel(t, "WritersThatDoNotCompare", func(t *testing.T) {
		var mu sync.Mutex
		var all strings.Builder
		w := writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return all.Write(p)
		})
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{Args: inShell("echo o; echo e >&2"),
			Stdout: w, Stderr: w}))
		require.Contains(t, all.String(), "o\n")
		require.Contains(t, all.String(), "e\n")
	})
	parallel(t, "Discarded", func(t *testing.T) {
		require.Equal(t, 3, b.mustRun(t, &sandbox.Cmd{
			Args: inShell("seq 1 100000; seq 1 100000 >&2; exit 3")}))
	})
	parallel(t, "LargeOnBoth", func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{Stdout: &stdout, Stderr: &stderr,
			Args: inShell("seq 1 300000 & seq 1 300000 >&2; wait")}))
		same(t, lines(1, 300_000), stdout.String())
		same(t, lines(1, 300_000), stderr.String())
	})
	parallel(t, "AsItComes", func(t *testing.T) {
		in, answer := io.Pipe()
		w := &watcher{text: "one\n", seen: func() {
			go func() { io.WriteString(answer, "two\n"); answer.Close() }()
		}}
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{Args: inShell("echo one; cat"),
			Stdin: in, Stdout: w}))
		same(t, "one\ntwo\n", w.buf.String())
	})
	// The last output is not lost.
	parallel(t, "Tail", func(t *testing.T) {
		for i := range b.suite.count(100) {
			var stdout bytes.Buffer
			require.Equal(t, 137, b.mustRun(t, &sandbox.Cmd{
				Args:   inShell(fmt.Sprintf("seq 1 %d; kill -9 $$", 1000+i)),
				Stdout: &stdout}))
			same(t, lines(1, 1000+i), stdout.String())
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// stdins gives programs an input.
func stdins(t *testing.T, b *box) {
	parallel(t, "None", func(t *testing.T) {
		same(t, "", b.stdout(t, &sandbox.Cmd{Args: []string{"cat"}}))
	})
	parallel(t, "Empty", func(t *testing.T) {
		same(t, "", b.stdout(t, &sandbox.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader("")}))
	})
	parallel(t, "50MiB", func(t *testing.T) {
		n := int64(b.suite.count(50 << 20))
		source := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), n) }
		want, got := sha256.New(), sha256.New()
		io.Copy(want, source())
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{Args: []string{"cat"}, Stdin: source(),
			Stdout: got}))
		require.Equal(t, want.Sum(nil), got.Sum(nil), "SHA-256 of the input and of the output")
	})
	// Run neither hangs nor returns an error.
	parallel(t, "NotRead", func(t *testing.T) {
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{Args: []string{"true"},
			Stdin: strings.NewReader(strings.Repeat("x", 10<<20))}))
		same(t, "1\n", b.stdout(t, &sandbox.Cmd{Args: []string{"head", "-n", "1"},
			Stdin: strings.NewReader(lines(1, 1_000_000))}))
	})
	// A failing reader is not taken for the end of the input.
	parallel(t, "ThatFails", func(t *testing.T) {
		dir := fmt.Sprintf("%s/stdin%d", b.tmp, b.count.Add(1))
		b.script(t, `mkdir "$1"`, dir)
		broken := errors.New("the download broke off")
		for name, rest := range map[string]io.Reader{
			"error": iotest.ErrReader(broken),
			"panic": readerFunc(func([]byte) (int, error) { panic("no luck") }),
		} {
			in := io.MultiReader(strings.NewReader("half of it"), rest)
			code, err := b.tryRun(t, &sandbox.Cmd{Args: inShell("cat; : >all"), Dir: dir,
				Stdin: in})
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
	// Run returns all the same
	parallel(t, "ThatBlocks", func(t *testing.T) {
		in, end := io.Pipe()
		defer end.Close()
		require.Equal(t, 3, b.mustRun(t, &sandbox.Cmd{Args: inShell("exit 3"), Stdin: in}))
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// programs has programs with arguments, a directory, an environment and a status.
func programs(t *testing.T, b *box) {
	// No shell expands the arguments.
	parallel(t, "Arguments", func(t *testing.T) {
		args := []string{"", "a b", "it's", `"`, "$HOME", "`x`", "$(x)", "*", "a\nb\n", `\`, "-n",
			"~", ";", "é\xff", "!", strings.Repeat("x", 100_000)}
		same(t, "<"+strings.Join(args, ">\n<")+">\n", b.stdout(t, &sandbox.Cmd{
			Args: append([]string{"printf", `<%s>\n`}, args...)}))
	})
	parallel(t, "Dir", func(t *testing.T) {
		dir := b.tmp + "/it's a\n$dir"
		b.script(t, `mkdir "$1"`, dir)
		same(t, dir+"\n", b.stdout(t, &sandbox.Cmd{Args: []string{"pwd"}, Dir: dir}))
		same(t, b.home+"\n", b.stdout(t, &sandbox.Cmd{Args: inShell("pwd")}))
		same(t, "tool\n", b.stdout(t, &sandbox.Cmd{Args: []string{"./tool"},
			Dir: b.tmp + "/" + b.tool(t)}))
	})
	parallel(t, "Env", func(t *testing.T) {
		var stdout bytes.Buffer
		value := "a=b 'c' \"d\" $HOME \\\nsecond é"
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{Args: []string{"sh", "-c",
			`printf '%s\n' "$A" "$B" "<${EMPTY-unset}>" "${PATH:+path}"`},
			Env: []string{"A=" + value, "B=1", "B=2", "EMPTY="}, Stdout: &stdout}))
		same(t, value+"\n2\n<>\npath\n", stdout.String())
	})
	// Run looks for the program in Env's PATH.
	parallel(t, "Path", func(t *testing.T) {
		dir := b.tmp + "/" + b.tool(t)
		same(t, "tool\n", b.stdout(t, &sandbox.Cmd{Args: []string{"tool"},
			Env: []string{"PATH=" + dir + ":/bin:/usr/bin"}}))
	})
	parallel(t, "NoTerminal", func(t *testing.T) {
		require.Zero(t, b.mustRun(t, &sandbox.Cmd{
			Args: inShell("! [ -t 0 ] && ! [ -t 1 ] && ! [ -t 2 ]")}))
		require.NotZero(t, b.mustRun(t, &sandbox.Cmd{Args: inShell(": < /dev/tty")}))
	})
	parallel(t, "NoState", func(t *testing.T) {
		sh := b.main(t)
		sh.output("export FROM_MAIN=1; cd /")
		same(t, "<> "+b.home+"\n", b.script(t, `echo "<$FROM_MAIN> $PWD"`))
		sh.output("unset FROM_MAIN; cd " + quote(b.home))
	})
	b.test(t, "WhileASessionIsBusy", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(ask), sandbox.Line)
		require.Equal(t, 5, b.mustRun(t, &sandbox.Cmd{Args: inShell("exit 5")}))
		exited(t, sh.input("ann\n"), 0)
	})
	parallel(t, "Statuses", func(t *testing.T) {
		for command, want := range map[string]int{"exit 0": 0, "exit 1": 1, "exit 126": 126,
			"exit 127": 127, "exit 255": 255, "kill -9 $$": 137, "kill -TERM $$": 143,
			"kill -HUP $$": 129, "kill -INT $$": 130} {
			require.Equal(t, want, b.mustRun(t, &sandbox.Cmd{Args: inShell(command)}),
				command)
		}
	})
	// Run returns all the same
	parallel(t, "OutputHeldOpenByAnother", func(t *testing.T) {
		m := b.marker(t)
		var stdout bytes.Buffer
		code, _ := b.tryRun(t, &sandbox.Cmd{Stdout: &stdout,
			Args: inShell("sleep " + string(m) + " & echo hi; exit 3")})
		require.Equal(t, 3, code)
		require.Equal(t, "hi\n", stdout.String())
		b.killMarked(t, m)
	})
}

// tool makes a program that prints "tool", and returns its directory, in b.tmp.
func (b *box) tool(t testing.TB) string {
	t.Helper()
	dir := fmt.Sprintf("bin%d", b.count.Add(1))
	b.script(t, `mkdir "$1" && cd "$1" && printf '#!/bin/sh\necho tool\n' > tool && chmod +x tool && echo x > data`, b.tmp+"/"+dir)
	return dir
}

// runCancels cancels Run: all processes of the program end.
func runCancels(t *testing.T, b *box) {
	for _, c := range []named{
		{"Program", "sleep {n}"},
		{"Tree", "sleep {n} & sh -c 'sleep {n}; :' & wait"},
		{"Ignoring", `trap "" INT TERM HUP; sleep {n}; :`},
	} {
		parallel(t, c.name, func(t *testing.T) {
			m := b.marker(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var ran atomic.Bool
			stdout := &watcher{text: "before\n", seen: func() {
				go func() {
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
			require.True(t, ran.Load(), "the program was not found among the processes")
			require.Equal(t, "before\n", stdout.buf.String())
			b.gone(t, m)
		})
	}
}

// found is like processes, for goroutines that are not the test's.
func found(b *box, m marker) bool {
	var stdout bytes.Buffer
	_, err := b.Run(context.Background(), &sandbox.Cmd{
		Args:  inShell("grep -l -f - /proc/[0-9]*/cmdline 2>/dev/null"),
		Stdin: strings.NewReader(string(m) + "\n"), Stdout: &stdout})
	return err != nil || stdout.Len() > 0
}

// runErrors has programs that Run cannot start.
func runErrors(t *testing.T, b *box) {
	dir := b.tmp + "/" + b.tool(t)
	for _, program := range []string{"nosuchprogram", "./nosuchprogram", "/no/such/program",
		"it's not there", "-x"} {
		t.Run(fmt.Sprintf("%q", program), func(t *testing.T) {
			code, err := b.tryRun(t, &sandbox.Cmd{Args: []string{program, "x"}, Dir: dir})
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.ErrorContains(t, err, program)
			require.Equal(t, 127, code)
		})
	}
	t.Run("NotExecutable", func(t *testing.T) {
		for _, program := range []string{dir + "/data", "./data"} {
			code, err := b.tryRun(t, &sandbox.Cmd{Args: []string{program}, Dir: dir})
			require.ErrorIs(t, err, fs.ErrPermission)
			require.Equal(t, 126, code)
		}
	})
	t.Run("Dir", func(t *testing.T) {
		_, err := b.tryRun(t, &sandbox.Cmd{Args: []string{"true"}, Dir: dir + "/nothing"})
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, dir+"/nothing")
		_, err = b.tryRun(t, &sandbox.Cmd{Args: []string{"true"}, Dir: dir + "/data"})
		require.Error(t, err)
	})
	t.Run("NoArguments", func(t *testing.T) {
		_, err := b.tryRun(t, &sandbox.Cmd{})
		require.Error(t, err)
	})
	// If the program itself ends with 127, that is a status.
	t.Run("A127OfItsOwn", func(t *testing.T) {
		require.Equal(t, 127, b.mustRun(t, &sandbox.Cmd{
			Args: inShell("nosuchprogram 2>/dev/null")}))
	})
	t.Run("BoxLives", func(t *testing.T) { b.open(t).lives() })
}
