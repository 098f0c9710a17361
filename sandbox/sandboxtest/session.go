package sandboxtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

func sessions(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Apart", func(t *testing.T) {
		t.Parallel()
		one, two := b.open(t), b.open(t)
		one.output("f() { echo one; }; x=1; umask 057; export y=1; mkdir sub; cd sub")
		res := two.exec(`f 2>/dev/null; echo "<$x$y>"; umask`)
		require.NotContains(t, res.Output, "one")
		require.Contains(t, res.Output, "<>\n")
		require.NotContains(t, res.Output, "57")
		two.lives()
		one.output("cd ..")
		one.lives()
	})
	t.Run("AtOnce", func(t *testing.T) {
		t.Parallel()
		one, two := b.open(t), b.open(t)
		running(t, one.exec("until [ -e go ]; do sleep 0.02; done; echo went",
			sandbox.Yield(50*time.Millisecond)))
		two.lives()
		two.output(": > " + one.dir + "/go")
		res := one.wait()
		exited(t, res, 0)
		same(t, "went\n", res.Output)
	})
	t.Run("IDs", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "main", b.ID())
		seen := map[string]bool{"main": true}
		for range 5 {
			id := b.open(t).ID()
			require.NotEmpty(t, id)
			require.False(t, seen[id], "the id %s comes twice", id)
			seen[id] = true
		}
	})
	t.Run("Main", func(t *testing.T) { // a Sandbox is a session, too
		t.Parallel()
		main := &shell{Session: b.Sandbox, b: b, t: t}
		main.output("main_variable=1; cd /")
		same(t, "1 in /\n", main.output(`echo "$main_variable in $PWD"`))
		same(t, "\n", b.open(t).output(`echo "$main_variable"`))
		main.output("cd " + quote(b.home))
	})
	t.Run("OpenStartsAtHome", func(t *testing.T) {
		t.Parallel()
		session, err := within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
			return b.Open(ctx)
		})
		require.NoError(t, err)
		defer session.Close()
		same(t, b.home+"\n", (&shell{Session: session, b: b, t: t}).output(`printf '%s\n' "$PWD"`))
	})
	t.Run("Env", func(t *testing.T) {
		t.Parallel()
		value := "a=b  'c' \"d\" $HOME \\ é\nsecond line"
		sh := b.open(t, sandbox.Env("PLAIN=1", "VALUE="+value, "TWICE=1"),
			sandbox.Env("TWICE=2", "EMPTY="))
		same(t, "1 2 <> "+value+"\n",
			sh.output(`sh -c 'printf "%s\n" "$PLAIN $TWICE <${EMPTY-unset}> $VALUE"'`))
		same(t, "\n", b.open(t).output(`echo "$PLAIN"`))
	})
	t.Run("DirWithStrangeName", func(t *testing.T) {
		t.Parallel()
		dir := b.tmp + "/it's a\n\"dir\" $HOME"
		b.script(t, `mkdir "$1"`, dir)
		session, err := within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
			return b.Open(ctx, sandbox.Dir(dir))
		})
		require.NoError(t, err)
		defer session.Close()
		res := (&shell{Session: session, b: b, t: t}).exec("pwd")
		same(t, dir+"\n", res.Output)
		require.Equal(t, dir, res.Cwd)
	})
	t.Run("DirThatIsNotThere", func(t *testing.T) {
		t.Parallel()
		_, err := within(b, t, "Open", func(ctx context.Context) (sandbox.Session, error) {
			return b.Open(ctx, sandbox.Dir(b.tmp+"/nothing"))
		})
		require.Error(t, err)
		require.ErrorContains(t, err, b.tmp+"/nothing")
	})
	t.Run("ClosingOneLeavesOthers", func(t *testing.T) {
		t.Parallel()
		one, two := b.open(t), b.open(t)
		one.close()
		one.close()
		one.fails(sandbox.ErrClosed, "Execute", one.executes(":"))
		two.lives()
	})
}
