package sandboxtest

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// user has programs, sessions and jobs of other users, which only root's box can have.
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
		b.runAs(t, "12345:12345", "true") // skips the case if it is unsupported
		b.sections(t, []section{
			{"Run", userRun},
			{"Session", userSession},
			{"Dir", userDir},
			{"Job", userJob},
			{"Ends", userEnds},
			{"View", userView},
		})
	})
}

// runAs calls Run for a script as a user, in /.
func (b *box) runAs(t *testing.T, name, script string) (int, error) {
	t.Helper()
	return b.tryRun(t, &sandbox.Cmd{Args: inShell(script), Dir: "/", User: name})
}

// userOwn gives the box's own user, which changes nothing.
func userOwn(t *testing.T, b *box, own string) {
	t.Parallel()
	script := inShell(`id; env | grep -v SANDSHELL_ | sort`)
	same(t, b.stdout(t, &sandbox.Cmd{Args: script}),
		b.stdout(t, &sandbox.Cmd{Args: script, User: own}))
	b.open(t, sandbox.User(own)).lives()
}

func userRun(t *testing.T, b *box) {
	same(t, "12345 54321 / 1\n", b.stdout(t, &sandbox.Cmd{
		Args: inShell(`echo "$(id -u) $(id -g) $HOME $A" >/dev/stdout`), Dir: "/",
		User: "12345:54321", Env: []string{"A=1"}}))
	if b.script(t, "grep -c '^nobody:' /etc/passwd || :") == "1\n" {
		same(t, "nobody nobody nobody\n", b.stdout(t, &sandbox.Cmd{Dir: "/", User: "nobody",
			Args: inShell(`echo "$(id -un) $USER $LOGNAME"
[ "$HOME:$SHELL" = "$(grep ^nobody: /etc/passwd | cut -d: -f6,7)" ]`)}))
	}
	code, err := b.runAs(t, "no-such-user", "true")
	var unknown user.UnknownUserError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, -1, code)
	dir := b.tmp + "/" + b.tool(t)
	b.script(t, `chmod 700 "$1"`, dir)
	_, err = b.tryRun(t, &sandbox.Cmd{Args: []string{"true"}, Dir: dir, User: "12345:12345"})
	require.ErrorIs(t, err, fs.ErrPermission)
}

// userDir gives no directory. A user who may not enter the sandbox's directory starts at home, or
// in the root.
func userDir(t *testing.T, b *box) {
	const name = "12345:54321"
	pwd := []string{"pwd"}
	own := b.stdout(t, &sandbox.Cmd{Args: pwd})
	want := "/\n"
	if _, err := b.tryRun(t, &sandbox.Cmd{Args: []string{"true"}, User: name,
		Dir: strings.TrimSuffix(own, "\n")}); err == nil {
		want = own
	}
	same(t, want, b.stdout(t, &sandbox.Cmd{Args: pwd, User: name}))
	same(t, want, b.openPlain(t, sandbox.User(name)).output("pwd"))
	if want == "/\n" { // one with a home that may be entered by all
		home := strings.Fields(b.script(t, `while IFS=: read -r name x id x x home x; do
[ "$id" -gt 0 ] && case $(ls -ld "$home/.") in d??x??x??x*) echo "$name $home"; break;; esac
done 2>/dev/null </etc/passwd`))
		if len(home) == 2 {
			same(t, home[1]+"\n", b.stdout(t, &sandbox.Cmd{Args: pwd, User: home[0]}))
		}
	}
	of, ok := sandbox.As[others](b.Sandbox)
	if !ok {
		return
	}
	for _, c := range []struct {
		name, want string
		opts       []sandbox.SessionOption
	}{
		{name, want, nil},
		// relative to the box's directory
		{"0", path.Dir(strings.TrimSuffix(own, "\n")) + "\n",
			[]sandbox.SessionOption{sandbox.Dir("../.")}},
	} {
		view, err := within(b, t, "AsUser", func(ctx context.Context) (sandbox.Sandbox, error) {
			return of.AsUser(ctx, c.name, c.opts...)
		})
		require.NoError(t, err)
		v := &box{Sandbox: view, suite: b.suite, bash: b.bash, ash: b.ash}
		same(t, c.want, v.main(t).output("pwd"))
		same(t, c.want, v.stdout(t, &sandbox.Cmd{Args: pwd}))
		require.NoError(t, view.Close())
	}
}

// openAs opens a session in /tmp as a user without a name.
func (b *box) openAs(t *testing.T, name string) *shell {
	t.Helper()
	return b.openPlain(t, sandbox.Dir("/tmp"), sandbox.User(name), sandbox.Env("A=1"))
}

func userSession(t *testing.T, b *box) {
	sh := b.openAs(t, "12345:54321")
	who := `echo "$(id -u) $(id -g) $HOME $PWD $A"`
	same(t, "12345 54321 / /tmp 1\n", sh.output(who))
	waiting(t, sh.exec(ask), sandbox.Line)
	exited(t, sh.input("ann\n"), 0)
	waiting(t, sh.exec("cat"), sandbox.Line)
	exited(t, sh.interrupt(), 130)
	same(t, "named\n", sh.output(`echo named >"$(tty </dev/tty)"`))
	sh.restarted(sh.exec("exit 3"), 3) // the fresh shell is the same user's
	same(t, "12345 54321 / /tmp 1\n", sh.output(who))
	if b.bash {
		exited(t, sh.exec("export B=2; exec bash"), 0)
		same(t, "12345 54321 / /tmp 1 2\n", sh.output(`echo "$(id -u) $(id -g) $HOME $PWD $A $B"`))
	}
}

func userJob(t *testing.T, b *box) {
	m := b.marker(t)
	job := b.start(t, "id -u; sleep "+string(m), sandbox.Dir("/"), sandbox.User("12345:54321"))
	b.alive(t, m, 1)
	job.kill()
	b.gone(t, m)
	require.Contains(t, job.ends(129, 137, 143).Output, "12345\n")
}

// userEnds closes a session and cancels Run. Processes of other users end too, and so do those
// whose parent has ended by then.
func userEnds(t *testing.T, b *box) {
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
		return b.Run(ctx, &sandbox.Cmd{Args: inShell(script), Dir: "/",
			User: "12345:54321", Stdout: stdout})
	})
	require.ErrorIs(t, err, context.Canceled)
	b.gone(t, m)
}

// others is a method that a box may have. It returns the box as another user's.
type others interface {
	AsUser(context.Context, string, ...sandbox.SessionOption) (sandbox.Sandbox, error)
}

// userView uses the box that AsUser returns: all that it does is that user's.
func userView(t *testing.T, b *box) {
	of, ok := sandbox.As[others](b.Sandbox)
	if !ok {
		t.Skip("the box has no AsUser")
	}
	dir := b.tmp + "/view"
	b.script(t, `mkdir -m 755 "$1" && chown 12345:54321 "$1" && echo mine >"$1/secret" &&
		chmod 600 "$1/secret" && chmod 755 "$(dirname "$1")"`, dir)
	become := func(name string) (sandbox.Sandbox, error) {
		return within(b, t, "AsUser", func(ctx context.Context) (sandbox.Sandbox, error) {
			return of.AsUser(ctx, name, sandbox.Dir(dir))
		})
	}
	_, err := become("no-such-user")
	var unknown user.UnknownUserError
	require.ErrorAs(t, err, &unknown)
	view, err := become("12345:54321")
	require.NoError(t, err)
	v := &box{Sandbox: view, suite: b.suite, home: dir, tmp: dir, bash: b.bash, ash: b.ash}
	const who = `echo "$(id -u):$(id -g) $PWD"`
	me := "12345:54321 " + dir + "\n"
	same(t, me, v.main(t).output(who))
	same(t, me, v.open(t).output("cd ..; "+who))
	same(t, me, v.script(t, who))
	same(t, me, v.start(t, who).ends(0).Output)

	v.writeFile(t, "written", "text", 0o600)
	from := filepath.Join(t.TempDir(), "copied")
	require.NoError(t, os.WriteFile(from, []byte("text"), 0o644))
	require.NoError(t, v.copyTo(t, from, "copied"))
	for _, name := range []string{"written", "copied"} {
		same(t, "12345\n", b.script(t, `ls -n "$1" | awk '{ print $3 }'`, dir+"/"+name))
		same(t, "text", v.readFile(t, name))
	}
	require.ErrorIs(t, v.withFiles(t, "ReadFile", readCall("secret")), fs.ErrPermission)
	to := filepath.Join(t.TempDir(), "secret")
	require.ErrorIs(t, v.copyFrom(t, "secret", to), fs.ErrPermission)
	_, err = v.runAs(t, "0", "true")
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = v.tryOpen(t, sandbox.User("0"))
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = attempt("Dial", func(ctx context.Context) (net.Conn, error) { // within would skip
		return v.Dial(ctx, "unix", "/x")
	})
	require.ErrorIs(t, err, errors.ErrUnsupported)

	m := b.marker(t)
	v.start(t, "sleep "+string(m))
	b.alive(t, m, 1)
	require.NoError(t, view.Close())
	b.gone(t, m)
	_, err = view.Execute(t.Context(), "true")
	require.ErrorIs(t, err, sandbox.ErrClosed)
	same(t, "here\n", b.script(t, "echo here"))

	_, err = become("12345")
	require.NoError(t, err) // Close of the box closes this one
}
