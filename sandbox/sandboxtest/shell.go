package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A shell is a session under test. Its methods end the test where a call fails or hangs.
type shell struct {
	sandbox.Session
	b    *box
	t    testing.TB
	dir  string // the directory it was left in
	mark string // the value of its variable MARK
}

// open opens a session in a new directory, with a variable MARK, that is closed at the end of t.
func (b *box) open(t testing.TB, opts ...sandbox.SessionOption) *shell {
	t.Helper()
	session, err := within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
		return b.Open(ctx, append([]sandbox.SessionOption{sandbox.Dir(b.tmp)}, opts...)...)
	})
	require.NoError(t, err, "Open")
	t.Cleanup((&shell{Session: session, b: b, t: t}).close)
	n := b.count.Add(1)
	sh := &shell{Session: session, b: b, t: t, dir: fmt.Sprintf("%s/d%d", b.tmp, n),
		mark: fmt.Sprintf("mark %d", n)}
	sh.output(fmt.Sprintf("mkdir %s && cd %s && MARK='%s'", sh.dir, sh.dir, sh.mark))
	return sh
}

// with is the same shell in a subtest.
func (sh *shell) with(t testing.TB) *shell {
	c := *sh
	c.t = t
	return &c
}

type call func(context.Context) (*sandbox.Result, error)

// must makes a call that may not fail.
func (sh *shell) must(what string, f call) *sandbox.Result {
	sh.t.Helper()
	res, err := within(sh.b, sh.t, what, f)
	require.NoErrorf(sh.t, err, "%s\nResult: %s", what, show(res))
	require.NotNilf(sh.t, res, "%s: no Result", what)
	return res
}

// fails makes a call that must fail with target, and returns the Result beside the error.
func (sh *shell) fails(target error, what string, f call) *sandbox.Result {
	sh.t.Helper()
	res, err := within(sh.b, sh.t, what, f)
	require.ErrorIsf(sh.t, err, target, "%s\nResult: %s", what, show(res))
	return res
}

// executes, inputs, waits and interrupts are Execute, Input, Wait and Interrupt as calls.
func (sh *shell) executes(command string, opts ...sandbox.ExecOption) call {
	return func(ctx context.Context) (*sandbox.Result, error) {
		return sh.Execute(ctx, command, opts...)
	}
}

func (sh *shell) inputs(text string, opts ...sandbox.ExecOption) call {
	return func(ctx context.Context) (*sandbox.Result, error) {
		return sh.Input(ctx, text, opts...)
	}
}

func (sh *shell) waits(opts ...sandbox.ExecOption) call {
	return func(ctx context.Context) (*sandbox.Result, error) { return sh.Wait(ctx, opts...) }
}

func (sh *shell) interrupts(opts ...sandbox.ExecOption) call {
	return func(ctx context.Context) (*sandbox.Result, error) { return sh.Interrupt(ctx, opts...) }
}

// exec is Execute.
func (sh *shell) exec(command string, opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	return sh.must("Execute("+brief(command)+")", sh.executes(command, opts...))
}

// timeout is Execute with a command that times out after d.
func (sh *shell) timeout(d time.Duration, command string,
	opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	res := sh.fails(sandbox.ErrTimeout, "Execute("+brief(command)+")",
		sh.executes(command, append(opts, sandbox.Timeout(d))...))
	require.NotNil(sh.t, res, "the Result beside ErrTimeout")
	return res
}

// begins is an Execute that returns when the command says "ready" or, of one that never does, after
// a time in which it has most likely begun: what has to be there for sure, as a signal that it
// ignores, comes before that word.
func (sh *shell) begins(command string) *sandbox.Result {
	sh.t.Helper()
	begun := sandbox.Yield(300 * time.Millisecond)
	if strings.Contains(command, "ready") {
		begun = sandbox.Until(regexp.MustCompile("ready\n"))
	}
	return sh.exec(command, begun)
}

// input is Input.
func (sh *shell) input(text string, opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	return sh.must("Input("+brief(text)+")", sh.inputs(text, opts...))
}

// wait is Wait.
func (sh *shell) wait(opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	return sh.must("Wait", sh.waits(opts...))
}

// interrupt is Interrupt, which always brings the shell back.
func (sh *shell) interrupt(opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	res := sh.must("Interrupt", sh.interrupts(opts...))
	require.Equalf(sh.t, sandbox.Exited, res.State, "Interrupt: %s", show(res))
	return res
}

// screen is Screen.
func (sh *shell) screen() *sandbox.Screen {
	sh.t.Helper()
	screen, err := within(sh.b, sh.t, "Screen", sh.Screen)
	require.NoError(sh.t, err, "Screen")
	return screen
}

// resize is Resize.
func (sh *shell) resize(rows, cols int) {
	sh.t.Helper()
	_, err := within(sh.b, sh.t, "Resize", empty(func(ctx context.Context) error {
		return sh.Resize(ctx, rows, cols)
	}))
	require.NoError(sh.t, err, "Resize")
}

// close is Close.
func (sh *shell) close() {
	sh.t.Helper()
	_, err := within(sh.b, sh.t, "Close", empty(func(context.Context) error { return sh.Close() }))
	require.NoError(sh.t, err, "Close")
}

// output returns the output of a command that ends with status 0.
func (sh *shell) output(command string, opts ...sandbox.ExecOption) string {
	sh.t.Helper()
	res := sh.exec(command, opts...)
	exited(sh.t, res, 0)
	return res.Output
}

// lives checks that the session goes on as if nothing had been: directory, variables, output,
// status.
func (sh *shell) lives() {
	sh.t.Helper()
	res := sh.exec(`printf '%s\n' "$MARK in $PWD"; (exit 9)`)
	exited(sh.t, res, 9)
	require.Falsef(sh.t, res.Restarted, "the shell has been restarted: %s", show(res))
	same(sh.t, sh.mark+" in "+sh.dir+"\n", res.Output)
	require.Equal(sh.t, sh.dir, res.Cwd, "Cwd")
}

// usable checks that the session, whatever happened to its shell, takes commands in the directory
// where it was.
func (sh *shell) usable() {
	sh.t.Helper()
	res := sh.exec(`printf '%s\n' "in $PWD"; (exit 9)`)
	exited(sh.t, res, 9)
	same(sh.t, "in "+sh.dir+"\n", res.Output)
	require.Equal(sh.t, sh.dir, res.Cwd, "Cwd")
}

// A script is a command whose result is known to the byte.
type script struct {
	name    string
	command string
	want    string // Output
	code    int    // ExitCode
	needs   string // a program that may not be there, or "bash: …"
}

// scripts makes a subtest of each script, in a session of its own that must live on.
func (b *box) scripts(t *testing.T, name string, scripts []script) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		for _, s := range scripts {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				b.need(t, s.needs)
				sh := b.open(t)
				res := sh.exec(s.command)
				exited(t, res, s.code)
				same(t, s.want, res.Output)
				require.False(t, res.Restarted, "Restarted")
				require.Zero(t, res.Omitted, "Omitted")
				sh.lives()
			})
		}
	})
}

// A named is a command that has a name, for tables.
type named struct{ name, command string }

// exited checks that the command has ended with one of the codes.
func exited(t testing.TB, res *sandbox.Result, codes ...int) {
	t.Helper()
	if res.State != sandbox.Exited || len(codes) > 0 && !slices.Contains(codes, res.ExitCode) ||
		res.Awaits != 0 || res.Cwd == "" {
		t.Fatalf("want exited with code %v and a Cwd, got %s", codes, show(res))
	}
}

// waiting checks that the command waits for one of the kinds of input.
func waiting(t testing.TB, res *sandbox.Result, kinds ...sandbox.InputKind) {
	t.Helper()
	if res.State != sandbox.Waiting || !slices.Contains(kinds, res.Awaits) {
		t.Fatalf("want waiting for %v, got %s", kinds, show(res))
	}
}

// running checks that the command goes on.
func running(t testing.TB, res *sandbox.Result) {
	t.Helper()
	if res.State != sandbox.Running {
		t.Fatalf("want running, got %s", show(res))
	}
}

// same checks that got is want, and shows where they part.
func same(t testing.TB, want, got string) {
	t.Helper()
	if want != got {
		t.Fatal(parting(want, got))
	}
}

// parting says where want and got part.
func parting(want, got string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	from := max(0, i-40)
	return fmt.Sprintf("output of %d bytes, want %d, differs at byte %d\ngot:  …%s\nwant: …%s",
		len(got), len(want), i, brief(got[from:]), brief(want[from:]))
}

// show is a Result for a message.
func show(res *sandbox.Result) string {
	if res == nil {
		return "none"
	}
	return fmt.Sprintf("%v, code %d, awaits %v, restarted %v, omitted %d, matched %q, cwd %q, "+
		"after %v, output of %d bytes %s",
		res.State, res.ExitCode, res.Awaits, res.Restarted, res.Omitted, res.Matched, res.Cwd,
		res.Duration.Round(time.Millisecond), len(res.Output), brief(res.Output))
}

// brief quotes s, without its middle if it is long.
func brief(s string) string {
	const most = 600
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q … %q", s[:most/2], s[len(s)-most/2:])
}

// quote makes s one word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// lines is "from\n" to "to\n", as seq prints it.
func lines(from, to int) string {
	var b []byte
	for i := from; i <= to; i++ {
		// fmt takes long under the race detector
		b = append(strconv.AppendInt(b, int64(i), 10), '\n')
	}
	return string(b)
}

// unix takes out the carriage returns of a terminal that adds them.
func unix(raw []byte) string { return string(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))) }
