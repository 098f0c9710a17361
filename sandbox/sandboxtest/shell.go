package sandboxtest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A shell is a session under test. Its methods end the test if a call fails or does not return.
type shell struct {
	sandbox.Session
	b    *box
	t    testing.TB
	dir  string // its directory
	mark string // the value of its variable MARK

	// what goesOn must not expect
	mayRestart bool // the case ends the shell, or may
	closed     bool // the case has closed the session
}

// test makes a parallel subtest with a session of its own, which must go on after f: see goesOn.
func (b *box) test(t *testing.T, name string, f func(*testing.T, *shell)) {
	parallel(t, name, func(t *testing.T) {
		sh := b.open(t)
		f(t, sh)
		sh.goesOn()
	})
}

// parallel makes a parallel subtest.
func parallel(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		f(t)
	})
}

// A section is a parallel subtest of cases.
type section struct {
	name string
	test func(*testing.T, *box)
}

// sections makes a subtest of each section. They share the box.
func (b *box) sections(t *testing.T, sections []section) {
	for _, s := range sections {
		parallel(t, s.name, func(t *testing.T) { s.test(t, b) })
	}
}

// open opens a session with a new directory and the variable MARK. It is closed at the end of t.
func (b *box) open(t testing.TB, opts ...sandbox.SessionOption) *shell {
	t.Helper()
	sh := b.openPlain(t, append([]sandbox.SessionOption{sandbox.Dir(b.tmp)}, opts...)...)
	n := b.count.Add(1)
	sh.dir, sh.mark = fmt.Sprintf("%s/d%d", b.tmp, n), fmt.Sprintf("mark %d", n)
	sh.output(fmt.Sprintf("mkdir %s && cd %s && MARK='%s'", sh.dir, sh.dir, sh.mark))
	return sh
}

// openPlain opens a session as it is with these options. It is closed at the end of t.
func (b *box) openPlain(t testing.TB, opts ...sandbox.SessionOption) *shell {
	t.Helper()
	session, err := b.tryOpen(t, opts...)
	require.NoError(t, err, "Open")
	sh := &shell{Session: session, b: b, t: t}
	t.Cleanup(sh.close)
	return sh
}

// tryOpen calls Open.
func (b *box) tryOpen(t testing.TB, opts ...sandbox.SessionOption) (sandbox.Session, error) {
	t.Helper()
	return within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
		return b.Open(ctx, opts...)
	})
}

// main returns the box's main session.
func (b *box) main(t testing.TB) *shell {
	return &shell{Session: b.Sandbox, b: b, t: t, dir: b.home}
}

// with returns the same shell for a subtest.
func (sh *shell) with(t testing.TB) *shell {
	c := *sh
	c.t = t
	return &c
}

type call func(context.Context) (*sandbox.Result, error)

// must makes a call that must succeed.
func (sh *shell) must(what string, f call) *sandbox.Result {
	sh.t.Helper()
	res, err := within(sh.b, sh.t, what, f)
	require.NoErrorf(sh.t, err, "%s\nResult: %s", what, show(res))
	require.NotNilf(sh.t, res, "%s: no Result", what)
	return res
}

// fails makes a call that must fail with target, and returns its Result, if any.
func (sh *shell) fails(target error, what string, f call) *sandbox.Result {
	sh.t.Helper()
	res, err := within(sh.b, sh.t, what, f)
	require.ErrorIsf(sh.t, err, target, "%s\nResult: %s", what, show(res))
	return res
}

// executeCall, inputs, waits and interrupts are Execute, Input, Wait and Interrupt as calls.
func (sh *shell) executeCall(command string, opts ...sandbox.ExecOption) call {
	return func(ctx context.Context) (*sandbox.Result, error) {
		return sh.Execute(ctx, command, opts...)
	}
}

// inputCall returns a call of Input.
func (sh *shell) inputCall(text string, opts ...sandbox.ExecOption) call {
	return func(ctx context.Context) (*sandbox.Result, error) {
		return sh.Input(ctx, text, opts...)
	}
}

// waitCall returns a call of Wait.
func (sh *shell) waitCall(opts ...sandbox.ExecOption) call {
	return func(ctx context.Context) (*sandbox.Result, error) { return sh.Wait(ctx, opts...) }
}

// interruptCall returns a call of Interrupt.
func (sh *shell) interruptCall(opts ...sandbox.ExecOption) call {
	return func(ctx context.Context) (*sandbox.Result, error) { return sh.Interrupt(ctx, opts...) }
}

// exec calls Execute.
func (sh *shell) exec(command string, opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	return sh.must("Execute("+brief(command)+")", sh.executeCall(command, opts...))
}

// executeUntil calls Execute with a context of the case.
func (sh *shell) executeUntil(ctx context.Context, command string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	sh.t.Helper()
	return within(sh.b, sh.t, "Execute", func(context.Context) (*sandbox.Result, error) {
		return sh.Execute(ctx, command, opts...)
	})
}

// timeout calls Execute with a command that does not end within the Timeout d.
func (sh *shell) timeout(d time.Duration, command string,
	opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	res := sh.fails(sandbox.ErrTimeout, "Execute("+brief(command)+")",
		sh.executeCall(command, append(opts, sandbox.Timeout(d))...))
	require.NotNil(sh.t, res, "the Result beside ErrTimeout")
	return res
}

// times calls f n times.
func times(n int, f func()) {
	for range n {
		f()
	}
}

// timesOut executes a command that its Timeout ends, with all its processes.
func (sh *shell) timesOut() {
	sh.t.Helper()
	m := sh.b.marker(sh.t)
	sh.timeout(200*time.Millisecond, "sleep "+string(m))
	sh.b.gone(sh.t, m)
}

// waitTimeout calls Wait for a command that does not end within its Timeout.
func (sh *shell) waitTimeout() *sandbox.Result {
	sh.t.Helper()
	res := sh.fails(sandbox.ErrTimeout, "Wait", sh.waitCall(sandbox.Timeout(100*time.Millisecond)))
	require.NotNil(sh.t, res, "the Result beside ErrTimeout")
	return res
}

// begins calls Execute with a command that goes on. If the command prints "ready", begins returns
// after that: a trap, for instance, is set by then. Otherwise it returns after a time in which the
// command has most likely begun.
func (sh *shell) begins(command string) *sandbox.Result {
	sh.t.Helper()
	begun := sandbox.Yield(300 * time.Millisecond)
	if strings.Contains(command, "ready") {
		begun = sandbox.Until(regexp.MustCompile("ready\n"))
	}
	return sh.exec(command, begun)
}

// input calls Input.
func (sh *shell) input(text string, opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	return sh.must("Input("+brief(text)+")", sh.inputCall(text, opts...))
}

// wait calls Wait.
func (sh *shell) wait(opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	return sh.must("Wait", sh.waitCall(opts...))
}

// interrupt calls Interrupt, after which the command must have ended.
func (sh *shell) interrupt(opts ...sandbox.ExecOption) *sandbox.Result {
	sh.t.Helper()
	res := sh.must("Interrupt", sh.interruptCall(opts...))
	require.Equalf(sh.t, sandbox.Exited, res.State, "State after Interrupt: %s", show(res))
	return res
}

// screen calls Screen.
func (sh *shell) screen() *sandbox.Screen {
	sh.t.Helper()
	screen, err := within(sh.b, sh.t, "Screen", sh.Screen)
	require.NoError(sh.t, err, "Screen")
	return screen
}

// resize calls Resize.
func (sh *shell) resize(rows, cols int) {
	sh.t.Helper()
	_, err := within(sh.b, sh.t, "Resize", noResult(func(ctx context.Context) error {
		return sh.Resize(ctx, rows, cols)
	}))
	require.NoError(sh.t, err, "Resize")
}

// close calls Close.
func (sh *shell) close() {
	sh.t.Helper()
	_, err := within(sh.b, sh.t, "Close", closeCall(sh))
	require.NoError(sh.t, err, "Close")
	sh.closed = true
}

// output executes a command that must end with status 0, and returns its output.
func (sh *shell) output(command string, opts ...sandbox.ExecOption) string {
	sh.t.Helper()
	res := sh.exec(command, opts...)
	exited(sh.t, res, 0)
	return res.Output
}

// askAndAnswer executes a command that asks, and answers. What is typed is echoed.
func (sh *shell) askAndAnswer() {
	sh.t.Helper()
	waiting(sh.t, sh.exec(ask), sandbox.Line)
	exitedWith(sh.t, sh.input("ann\n"), 0, "ann\nhello ann\n")
}

// touch makes an empty file in the session's directory, while a command runs.
func (sh *shell) touch(name string) {
	sh.t.Helper()
	sh.b.script(sh.t, `: > "$1"`, sh.dir+"/"+name)
}

// sleeps begins a command that sleeps, and returns its marker.
func (sh *shell) sleeps() marker {
	sh.t.Helper()
	m := sh.b.marker(sh.t)
	running(sh.t, sh.exec("sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
	sh.b.alive(sh.t, m, 1)
	return m
}

// restarted checks that the command has ended the shell with code, and that there is another.
func (sh *shell) restarted(res *sandbox.Result, code int) {
	sh.t.Helper()
	exited(sh.t, res, code)
	require.Truef(sh.t, res.Restarted,
		"Restarted is false, though the command has ended the shell: %s", show(res))
	sh.mayRestart = true
}

// lives checks that the session has its directory and variables, and reports output and status.
func (sh *shell) lives() {
	sh.t.Helper()
	res := sh.exec(`printf '%s\n' "$MARK in $PWD"; (exit 9)`)
	exited(sh.t, res, 9)
	require.Falsef(sh.t, res.Restarted,
		"Restarted is true, though no command has ended the shell: %s", show(res))
	same(sh.t, sh.mark+" in "+sh.dir+"\n", res.Output)
	require.Equal(sh.t, sh.dir, res.Cwd, "Cwd")
}

// usable checks that the session takes commands in its directory, maybe in a fresh shell.
func (sh *shell) usable() {
	sh.t.Helper()
	res := sh.exec(`printf '%s\n' "in $PWD"; (exit 9)`)
	exited(sh.t, res, 9)
	same(sh.t, "in "+sh.dir+"\n", res.Output)
	require.Equal(sh.t, sh.dir, res.Cwd, "Cwd")
}

// goesOn checks that the session is as open left it or, if the case may have ended the shell, that
// it is usable.
func (sh *shell) goesOn() {
	sh.t.Helper()
	switch {
	case sh.closed:
	case sh.mayRestart:
		sh.usable()
	default:
		sh.lives()
	}
}

// A script is a command with a known result.
type script struct {
	name    string
	command string
	want    string // Output
	code    int    // ExitCode
	needs   string // as for box.need
}

// scripts makes a section of scripts.
func (b *box) scripts(t *testing.T, name string, scripts []script) {
	parallel(t, name, func(t *testing.T) {
		for _, s := range scripts {
			b.test(t, s.name, func(t *testing.T, sh *shell) {
				b.need(t, s.needs)
				res := sh.exec(s.command)
				exitedWith(t, res, s.code, s.want)
				require.False(t, res.Restarted, "Restarted")
				require.Zero(t, res.Omitted, "Omitted")
			})
		}
	})
}

// A named is a case that differs from others in its command.
type named struct{ name, command string }
