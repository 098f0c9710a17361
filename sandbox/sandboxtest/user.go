package sandboxtest

import (
	"bytes"
	"context"
	"io/fs"
	"os/user"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// user: other users' programs, sessions and jobs. Only root's box can have them.
func (s *suite) user(t *testing.T) {
	b := s.box(t)
	own := strings.TrimSpace(b.script(t, "id -u"))
	t.Run("Own", func(t *testing.T) { userOwn(t, b, own) })
	t.Run("Others", func(t *testing.T) {
		if own != "0" {
			code, err := b.runAs(t, "23456", "true")
			require.ErrorIs(t, err, fs.ErrPermission)
			require.ErrorContains(t, err, "23456")
			require.Equal(t, 126, code)
			return
		}
		b.runAs(t, "12345:12345", "true") // skips where it is unsupported
		t.Run("Run", func(t *testing.T) { userRun(t, b) })
		t.Run("Session", func(t *testing.T) { userSession(t, b) })
		t.Run("Dir", func(t *testing.T) { userDir(t, b) })
		t.Run("Job", func(t *testing.T) { userJob(t, b) })
		t.Run("Ends", func(t *testing.T) { userEnds(t, b) })
		t.Run("View", func(t *testing.T) { userView(t, b) })
	})
}

// runAs is Run of a script as a user, in /.
func (b *box) runAs(t *testing.T, name, script string) (int, error) {
	t.Helper()
	return within(b, t, "Run", func(ctx context.Context) (int, error) {
		return b.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", script}, Dir: "/", User: name})
	})
}

// userOwn: the box's own user is always to be had, and changes nothing.
func userOwn(t *testing.T, b *box, own string) {
	t.Parallel()
	var plain, same bytes.Buffer
	script := []string{"sh", "-c", `id; env | grep -v SANDSHELL_ | sort`}
	require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: script, Stdout: &plain}))
	require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: script, User: own, Stdout: &same}))
	require.Equal(t, plain.String(), same.String())
	b.open(t, sandbox.User(own)).lives()
}

func userRun(t *testing.T, b *box) {
	t.Parallel()
	var stdout bytes.Buffer
	cmd := &sandbox.Cmd{
		Args: []string{"sh", "-c", `echo "$(id -u) $(id -g) $HOME $A" >/dev/stdout`}, Dir: "/",
		User: "12345:54321", Env: []string{"A=1"}, Stdout: &stdout}
	require.Zero(t, b.cmd(t, cmd))
	same(t, "12345 54321 / 1\n", stdout.String())
	if b.script(t, "grep -c '^nobody:' /etc/passwd || :") == "1\n" {
		stdout.Reset()
		cmd.User, cmd.Args[2] = "nobody",
			`echo "$(id -un) $USER $LOGNAME"; [ "$HOME:$SHELL" = "$(grep ^nobody: /etc/passwd | cut -d: -f6,7)" ]`
		require.Zero(t, b.cmd(t, cmd))
		same(t, "nobody nobody nobody\n", stdout.String())
	}
	code, err := b.runAs(t, "no-such-user", "true")
	var unknown user.UnknownUserError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, -1, code)
	dir := b.tmp + "/" + b.tool(t)
	b.script(t, `chmod 700 "$1"`, dir)
	_, err = within(b, t, "Run", func(ctx context.Context) (int, error) {
		return b.Run(ctx, &sandbox.Cmd{Args: []string{"true"}, Dir: dir, User: "12345:12345"})
	})
	require.ErrorIs(t, err, fs.ErrPermission)
}

// userDir: without a directory, a user who may not enter the sandbox's starts in the root.
func userDir(t *testing.T, b *box) {
	t.Parallel()
	const inBox, inRoot = "the sandbox's directory", "the root"
	var own, got bytes.Buffer
	require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"pwd"}, Stdout: &own}))
	want := inRoot
	probe := &sandbox.Cmd{Args: []string{"true"}, Dir: strings.TrimSuffix(own.String(), "\n"),
		User: "12345:54321"}
	_, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
		return b.Run(ctx, probe)
	})
	if err == nil {
		want = inBox
	}
	what := func(dir string) string {
		switch dir {
		case own.String():
			return inBox
		case "/\n":
			return inRoot
		}
		return dir
	}
	require.Zero(t, b.cmd(t, &sandbox.Cmd{Args: []string{"pwd"}, User: "12345:54321",
		Stdout: &got}))
	require.Equal(t, want, what(got.String()))
	session, err := within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
		return b.Open(ctx, sandbox.User("12345:54321"))
	})
	require.NoError(t, err)
	sh := &shell{Session: session, b: b, t: t}
	t.Cleanup(sh.close)
	require.Equal(t, want, what(sh.output("pwd")))
	if of, ok := sandbox.As[others](b.Sandbox); ok {
		view := func(name string, opts ...sandbox.SessionOption) (main, run string) {
			view, err := within(b, t, "AsUser", func(ctx context.Context) (sandbox.Sandbox, error) {
				return of.AsUser(ctx, name, opts...)
			})
			require.NoError(t, err)
			defer view.Close()
			v := &box{Sandbox: view, suite: b.suite, bash: b.bash, ash: b.ash}
			var out bytes.Buffer
			require.Zero(t, v.cmd(t, &sandbox.Cmd{Args: []string{"pwd"}, Stdout: &out}))
			return (&shell{Session: view, b: v, t: t}).output("pwd"), out.String()
		}
		main, run := view("12345:54321")
		require.Equal(t, want, what(main))
		require.Equal(t, want, what(run))
		main, run = view("0", sandbox.Dir("../.")) // a relative one starts in the box's
		above := path.Dir(strings.TrimSuffix(own.String(), "\n")) + "\n"
		same(t, above, main)
		same(t, above, run)
	}
}

// openAs opens a session in /tmp as a user of whom only numbers are known.
func (b *box) openAs(t *testing.T, name string) *shell {
	t.Helper()
	session, err := within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
		return b.Open(ctx, sandbox.Dir("/tmp"), sandbox.User(name), sandbox.Env("A=1"))
	})
	require.NoError(t, err)
	sh := &shell{Session: session, b: b, t: t}
	t.Cleanup(sh.close)
	return sh
}

func userSession(t *testing.T, b *box) {
	t.Parallel()
	sh := b.openAs(t, "12345:54321")
	who := `echo "$(id -u) $(id -g) $HOME $PWD $A"`
	same(t, "12345 54321 / /tmp 1\n", sh.output(who))
	waiting(t, sh.exec(ask), sandbox.Line)
	exited(t, sh.input("ann\n"), 0)
	waiting(t, sh.exec("cat"), sandbox.Line)
	exited(t, sh.must("Interrupt", func(ctx context.Context) (*sandbox.Result, error) {
		return sh.Interrupt(ctx)
	}), 130)
	same(t, "named\n", sh.output(`echo named >"$(tty </dev/tty)"`))
	res := sh.exec("exit 3") // the fresh shell is the user's too
	exited(t, res, 3)
	require.True(t, res.Restarted)
	same(t, "12345 54321 / /tmp 1\n", sh.output(who))
	if b.bash {
		exited(t, sh.exec("export B=2; exec bash"), 0)
		same(t, "12345 54321 / /tmp 1 2\n", sh.output(`echo "$(id -u) $(id -g) $HOME $PWD $A $B"`))
	}
}

func userJob(t *testing.T, b *box) {
	t.Parallel()
	m := b.marker(t)
	job, err := within(b, t, "Background", func(ctx context.Context) (sandbox.Job, error) {
		return b.Background(ctx, "id -u; sleep "+string(m), sandbox.Dir("/"),
			sandbox.User("12345:54321"))
	})
	require.NoError(t, err)
	b.alive(t, m, 1)
	_, err = within(b, t, "Kill", empty(job.Kill))
	require.NoError(t, err)
	b.gone(t, m)
	res, err := within(b, t, "Wait", job.Wait)
	require.NoError(t, err)
	require.Contains(t, res.Output, "12345\n")
}

// userEnds: the end of a session, and of Run's ctx, find what is another user's and no descendant
// any more.
func userEnds(t *testing.T, b *box) {
	t.Parallel()
	m := b.marker(t)
	sh := b.openAs(t, "12345:54321")
	b.need(t, "setsid")
	sh.exec("(setsid sleep " + string(m) + " >/dev/null 2>&1 </dev/null &)")
	b.alive(t, m, 1)
	sh.close()
	b.gone(t, m)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stdout := &watcher{text: "before\n", seen: func() { go cancel() }}
	_, err := within(b, t, "Run", func(context.Context) (int, error) {
		script := "(setsid sleep " + string(m) + " >/dev/null 2>&1 &); echo before; sleep " +
			string(m)
		return b.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", script}, Dir: "/",
			User: "12345:54321", Stdout: stdout})
	})
	require.ErrorIs(t, err, context.Canceled)
	b.gone(t, m)
}
