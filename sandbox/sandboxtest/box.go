package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

const (
	limit = 2 * time.Minute  // how long a call may take: far more than a slow machine needs
	grace = 20 * time.Second // how long it may take to return after its context has ended
)

// A box is a sandbox under test.
type box struct {
	sandbox.Sandbox
	suite *suite
	home  string       // the directory where its sessions start
	tmp   string       // a directory in it for the cases
	bash  bool         // its shell is bash
	ash   bool         // its shell is busybox ash
	count atomic.Int64 // for names of directories

	sweeper *box // removes tmp if the case closes this box
}

// box makes a sandbox that is closed at the end of t.
func (s *suite) box(t testing.TB) *box {
	t.Helper()
	sb := s.factory(t)
	require.NotNil(t, sb, "the factory has returned no sandbox")
	b := &box{Sandbox: sb, suite: s}
	t.Cleanup(func() { b.mustClose(t) })
	main := b.main(t)
	b.home = strings.TrimSuffix(main.output(`printf '%s\n' "$PWD"`), "\n")
	b.bash = main.output(`echo "${BASH_VERSION:+bash}"`) == "bash\n"
	b.ash = strings.Contains(main.output("readlink /proc/$$/exe || :"), "busybox")
	b.tmp = strings.TrimSpace(
		b.script(t, `d=$(mktemp -d /tmp/sandboxtest.XXXXXX) && cd "$d" && pwd -P`))
	t.Cleanup(func() { b.remove(t) }) // runs before Close
	return b
}

// mustClose calls Close.
func (b *box) mustClose(t testing.TB) {
	t.Helper()
	_, err := within(b, t, "Close", closeCall(b))
	require.NoError(t, err, "Close")
}

// doomed makes a sandbox that the case closes, and another that cleans up after it if both are on
// one machine.
func (s *suite) doomed(t testing.TB) (doomed, witness *box) {
	t.Helper()
	witness = s.box(t)
	doomed = s.box(t)
	doomed.sweeper = witness
	return doomed, witness
}

// remove removes the cases' directory.
func (b *box) remove(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var by sandbox.Sandbox = b
	if b.sweeper != nil {
		by = b.sweeper
	}
	if _, err := by.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c",
		`chmod -R u+w "$1"; rm -rf "$1"`, "sh", b.tmp}}); err != nil {
		t.Logf("remove %s: %v", b.tmp, err)
	}
}

// within calls f with a context of one minute. It fails the test if f does not return, and skips it
// if the error is errors.ErrUnsupported.
func within[T any](b *box, t testing.TB, what string,
	f func(context.Context) (T, error)) (T, error) {
	t.Helper()
	value, err := attempt(what, f)
	if errors.Is(err, errHangs) {
		t.Fatal(err)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		b.suite.skip(t, "unsupported by this box: "+err.Error())
	}
	return value, err
}

// noResult adapts a call that returns only an error to within.
func noResult(f func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }
}

// closeCall returns a call of Close for within.
func closeCall(c io.Closer) func(context.Context) (struct{}, error) {
	return noResult(func(context.Context) error { return c.Close() })
}

var errHangs = errors.New("did not return after its context ended")

// attempt is within for goroutines that are not the test's. If f does not return, the error is
// errHangs with the stacks of all goroutines.
func attempt[T any](what string, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		value, err := f(ctx)
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-time.After(limit + grace):
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		var none T
		return none, fmt.Errorf("%s %w, for %v\n\n%s", what, errHangs, grace, stacks)
	}
}

// tryRun calls Run.
func (b *box) tryRun(t testing.TB, cmd *sandbox.Cmd) (code int, err error) {
	t.Helper()
	return within(b, t, "Run", func(ctx context.Context) (int, error) { return b.Run(ctx, cmd) })
}

// mustRun calls Run, which must succeed.
func (b *box) mustRun(t testing.TB, cmd *sandbox.Cmd) (code int) {
	t.Helper()
	code, err := b.tryRun(t, cmd)
	require.NoErrorf(t, err, "Run(%q)", cmd.Args)
	return code
}

// stdout calls Run, which must succeed with status 0, and returns what the program has printed.
func (b *box) stdout(t testing.TB, cmd *sandbox.Cmd) string {
	t.Helper()
	var out strings.Builder
	cmd.Stdout = &out
	require.Zerof(t, b.mustRun(t, cmd), "exit status of Run(%q)", cmd.Args)
	return out.String()
}

// inShell returns the arguments of a program that executes script.
func inShell(script string) []string { return []string{"sh", "-c", script} }

// sh runs a script without a session.
func (b *box) sh(t testing.TB, script string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return b.shIn(t, "", script, args...)
}

// shIn is sh with stdin.
func (b *box) shIn(t testing.TB, stdin, script string,
	args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = b.mustRun(t, &sandbox.Cmd{Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

// script runs a script without a session. It must end with status 0. script returns its stdout.
func (b *box) script(t testing.TB, script string, args ...string) string {
	t.Helper()
	code, stdout, stderr := b.sh(t, script, args...)
	require.Zerof(t, code, "Run(sh -c %s): stdout %s, stderr %s", brief(script), brief(stdout),
		brief(stderr))
	return stdout
}

// cat returns the content of a file.
func (b *box) cat(t testing.TB, path string) string {
	t.Helper()
	return b.script(t, `cat "$1"`, path)
}

// list lists a directory.
func (b *box) list(t testing.TB, dir string) string {
	t.Helper()
	return b.script(t, `ls -A "$1"`, dir)
}

// has reports whether the box has a program.
func (b *box) has(t testing.TB, program string) bool {
	t.Helper()
	if known, ok := b.suite.programs.Load(program); ok {
		return known.(bool)
	}
	code, _, _ := b.sh(t, `command -v -- "$1"`, program)
	b.suite.programs.Store(program, code == 0)
	return code == 0
}

// need skips the case if the box lacks one of needs: a program, or "bash: FEATURE" if the session's
// shell must be bash, which has the feature.
func (b *box) need(t testing.TB, needs ...string) {
	t.Helper()
	for _, need := range needs {
		switch {
		case strings.HasPrefix(need, "bash: "):
			if !b.bash {
				b.suite.skip(t, "needs "+need)
			}
		case need != "" && !b.has(t, need):
			b.suite.skip(t, "no "+need+" in this box")
		}
	}
}

// needScript skips the case if a script fails.
func (b *box) needScript(t testing.TB, why, script string, args ...string) {
	t.Helper()
	if code, _, _ := b.sh(t, script, args...); code != 0 {
		b.suite.skip(t, why)
	}
}

// needNoRoot skips the case if the box's user is root.
func (b *box) needNoRoot(t testing.TB) {
	t.Helper()
	if b.root(t) {
		b.suite.skip(t, "root has all permissions")
	}
}

// root reports whether the box's user is root.
func (b *box) root(t testing.TB) bool {
	t.Helper()
	return b.script(t, "id -u") == "0\n"
}

// A marker is a number of seconds, decades in fact. By it, a case finds its "sleep marker" among
// all processes.
type marker string

// marker returns a new marker. If the test fails, the processes that have it are killed.
func (b *box) marker(t testing.TB) marker {
	t.Helper()
	m := marker(fmt.Sprint(b.suite.markers.Add(1)))
	t.Cleanup(func() {
		if t.Failed() {
			b.killMarked(t, m)
		}
	})
	return m
}

// killMarked kills the processes with m in their arguments.
func (b *box) killMarked(t testing.TB, m marker) {
	t.Helper()
	for _, process := range b.processes(t, m) {
		pid := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(process, "/proc/"),
			"/cmdline"))[0]
		b.sh(t, `kill -9 "$1"`, pid)
	}
}

// processes lists the box's processes with m in their arguments. grep reads the marker from stdin,
// so that it does not find itself. With -F, busybox's grep would stop at a line's first NUL, which
// is after the first argument.
func (b *box) processes(t testing.TB, m marker) []string {
	t.Helper()
	_, stdout, _ := b.shIn(t, string(m)+"\n",
		`if [ -r /proc/self/cmdline ]; then grep -l -f - /proc/[0-9]*/cmdline 2>/dev/null; else ps -A -o pid= -o args= | grep -f -; fi`)
	return strings.FieldsFunc(stdout, func(r rune) bool { return r == '\n' })
}

// alive waits for n processes with m in their arguments.
func (b *box) alive(t testing.TB, m marker, n int) {
	t.Helper()
	b.eventually(t, func() bool {
		return len(b.processes(t, m)) >= n
	}, "%d processes with %s in their arguments", n, m)
}

// ended waits until no process has m in its arguments.
func (b *box) ended(t testing.TB, m marker, what string) {
	t.Helper()
	b.eventually(t, func() bool { return len(b.processes(t, m)) == 0 }, "the end of %s", what)
}

// gone checks that no process has m in its arguments.
func (b *box) gone(t testing.TB, m marker) {
	t.Helper()
	left := b.processes(t, m)
	if len(left) == 0 {
		return
	}
	_, detail, _ := b.sh(t,
		`for f in "$@"; do tr '\0' ' ' < "$f"; sed -n '/^State\|^PPid\|^SigIgn/p' "${f%cmdline}status" | tr '\n\t' '  '; echo; done 2>/dev/null`, left...)
	t.Fatalf("%d processes are left, which should have ended:\n%s\n%s", len(left),
		strings.Join(left, " "), detail)
}

// eventually polls ok until it is true, for states of which a Sandbox has no event.
func (b *box) eventually(t testing.TB, ok func() bool, format string, args ...any) {
	t.Helper()
	for end := time.Now().Add(grace); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: "+format, append([]any{grace}, args...)...)
		}
	}
}
