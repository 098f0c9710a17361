package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// limit is how long a call may take, and grace how long it may take to heed the end of its context:
// the engine needs seconds to kill a program that will not be killed.
const (
	limit = time.Minute
	grace = 20 * time.Second
)

// A box is a sandbox under test, with what the cases need to know of it.
type box struct {
	sandbox.Sandbox
	suite *suite
	home  string // the directory where its sessions start
	tmp   string // a directory in it for the cases
	bash  bool   // its shell is bash
	ash   bool   // its shell is busybox ash
	count atomic.Int64

	sweeper *box // removes tmp, when this box may be closed
}

// box makes a sandbox that is closed at the end of t.
func (s *suite) box(t testing.TB) *box {
	t.Helper()
	sb := s.factory(t)
	require.NotNil(t, sb, "the factory's sandbox")
	b := &box{Sandbox: sb, suite: s}
	t.Cleanup(func() { b.end(t) })
	main := &shell{Session: sb, b: b, t: t}
	b.home = strings.TrimSuffix(main.output(`printf '%s\n' "$PWD"`), "\n")
	b.bash = main.output(`echo "${BASH_VERSION:+bash}"`) == "bash\n"
	b.ash = strings.Contains(main.output("readlink /proc/$$/exe || :"), "busybox")
	b.tmp = strings.TrimSpace(
		b.script(t, `d=$(mktemp -d /tmp/sandboxtest.XXXXXX) && cd "$d" && pwd -P`))
	t.Cleanup(func() { b.remove(t) }) // before Close
	return b
}

// end is Close.
func (b *box) end(t testing.TB) {
	t.Helper()
	_, err := within(b, t, "Close", empty(func(context.Context) error { return b.Close() }))
	require.NoError(t, err, "Close")
}

// doomed makes a sandbox that the case closes, and another that cleans up after it, should both be
// on one machine.
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

// within calls f, which has a context of one minute. It ends the test if f does not return, and
// skips it if the sandbox cannot do what f wants.
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

// empty makes a call that returns only an error one that within takes.
func empty(f func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }
}

var errHangs = errors.New("has not returned after its context ended")

// attempt is within for goroutines that are not the test's: what does not return is an error with
// everybody's stack.
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

// sh runs a script without a session, and returns its exit status and what it printed to stdout and
// stderr.
func (b *box) sh(t testing.TB, script string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return b.shIn(t, "", script, args...)
}

// shIn is sh with an input.
func (b *box) shIn(t testing.TB, stdin, script string,
	args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
		return b.Run(ctx, &sandbox.Cmd{Args: append([]string{"sh", "-c", script, "sh"}, args...),
			Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
	})
	require.NoErrorf(t, err, "Run(sh -c %s)", brief(script))
	return code, out.String(), errs.String()
}

// script runs a script that must succeed without a session, and returns its stdout.
func (b *box) script(t testing.TB, script string, args ...string) string {
	t.Helper()
	code, stdout, stderr := b.sh(t, script, args...)
	require.Zerof(t, code, "Run(sh -c %s): stdout %s, stderr %s", brief(script), brief(stdout),
		brief(stderr))
	return stdout
}

// has reports whether a program is in the box.
func (b *box) has(t testing.TB, program string) bool {
	t.Helper()
	if known, ok := b.suite.programs.Load(program); ok {
		return known.(bool)
	}
	code, _, _ := b.sh(t, `command -v -- "$1"`, program)
	b.suite.programs.Store(program, code == 0)
	return code == 0
}

// need skips the case if the box lacks one of these: a program, or "bash: …", for what other shells
// do not have.
func (b *box) need(t testing.TB, needs ...string) {
	t.Helper()
	for _, need := range needs {
		switch {
		case strings.HasPrefix(need, "bash"):
			if !b.bash {
				b.suite.skip(t, "needs "+need)
			}
		case need != "" && !b.has(t, need):
			b.suite.skip(t, "no "+need+" in this box")
		}
	}
}

// root reports whether the box's user is root.
func (b *box) root(t testing.TB) bool {
	t.Helper()
	return b.script(t, "id -u") == "0\n"
}

// A marker is a number of seconds, decades in fact, that tells a case's "sleep marker" from all
// other processes.
type marker string

// marker returns a new one. What still sleeps when the test has failed is killed.
func (b *box) marker(t testing.TB) marker {
	t.Helper()
	m := marker(fmt.Sprint(b.suite.markers.Add(1)))
	t.Cleanup(func() {
		if t.Failed() {
			b.slay(t, m)
		}
	})
	return m
}

// slay kills the processes that have m in their arguments.
func (b *box) slay(t testing.TB, m marker) {
	t.Helper()
	for _, process := range b.processes(t, m) {
		pid := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(process, "/proc/"),
			"/cmdline"))[0]
		b.sh(t, `kill -9 "$1"`, pid)
	}
}

// processes lists the box's processes that have m in their arguments. The marker goes in by stdin:
// the look-up must not find itself. (Not as a fixed string: with -F, busybox's grep looks no
// further than a line's first NUL, which is behind the first argument.)
func (b *box) processes(t testing.TB, m marker) []string {
	t.Helper()
	_, stdout, _ := b.shIn(t, string(m)+"\n",
		`if [ -r /proc/self/cmdline ]; then grep -l -f - /proc/[0-9]*/cmdline 2>/dev/null; else ps -A -o pid= -o args= | grep -f -; fi`)
	return strings.FieldsFunc(stdout, func(r rune) bool { return r == '\n' })
}

// alive waits until n processes have m in their arguments.
func (b *box) alive(t testing.TB, m marker, n int) {
	t.Helper()
	b.eventually(t, func() bool {
		return len(b.processes(t, m)) >= n
	}, "%d processes with %s in their arguments", n, m)
}

// gone checks that no process has m in its arguments, now.
func (b *box) gone(t testing.TB, m marker) {
	t.Helper()
	left := b.processes(t, m)
	if len(left) == 0 {
		return
	}
	_, detail, _ := b.sh(t,
		`for f in "$@"; do tr '\0' ' ' < "$f"; sed -n '/^State\|^PPid\|^SigIgn/p' "${f%cmdline}status" | tr '\n\t' '  '; echo; done 2>/dev/null`, left...)
	t.Fatalf("%d processes are left:\n%s\n%s", len(left), strings.Join(left, " "), detail)
}

// eventually polls ok until it is true: for what the contract has no event for.
func (b *box) eventually(t testing.TB, ok func() bool, format string, args ...any) {
	t.Helper()
	for end := time.Now().Add(grace); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: "+format, append([]any{grace}, args...)...)
		}
	}
}
