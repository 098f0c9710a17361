package sandboxtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// An others is a box that can be another user's.
type others interface {
	AsUser(context.Context, string, ...sandbox.SessionOption) (sandbox.Sandbox, error)
}

// userView: a box as another user's, where it has AsUser. Whatever is done by it is that user's.
func userView(t *testing.T, b *box) {
	t.Parallel()
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
	main := &shell{Session: view, b: v, t: t}
	same(t, me, main.output(who))
	same(t, me, v.open(t).output("cd ..; "+who))
	_, out, _ := v.sh(t, who)
	same(t, me, out)
	res := v.start(t, who).ends(0)
	same(t, me, res.Output)

	v.writeFile(t, "written", "text", 0o600)
	from := filepath.Join(t.TempDir(), "copied")
	require.NoError(t, os.WriteFile(from, []byte("text"), 0o644))
	require.NoError(t, v.copyTo(t, from, "copied"))
	for _, name := range []string{"written", "copied"} {
		same(t, "12345\n", b.script(t, `ls -n "$1" | awk '{ print $3 }'`, dir+"/"+name))
		same(t, "text", v.readFile(t, name))
	}
	require.ErrorIs(t, v.withFiles(t, "ReadFile", func(ctx context.Context, f sandbox.Files) error {
		_, err := f.ReadFile(ctx, "secret", 0)
		return err
	}), fs.ErrPermission)
	to := filepath.Join(t.TempDir(), "secret")
	require.ErrorIs(t, v.copyFrom(t, "secret", to), fs.ErrPermission)
	_, err = v.runAs(t, "0", "true")
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
		return v.Open(ctx, sandbox.User("0"))
	})
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = attempt("Dial", empty(func(ctx context.Context) error { // within would skip the rest
		_, err := v.Dial(ctx, "unix", "/x")
		return err
	}))
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
	require.NoError(t, err) // the box's Close closes it
}
