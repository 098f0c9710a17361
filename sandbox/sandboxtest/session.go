package sandboxtest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// sessions has several sessions in a box, which are separate.
func sessions(t *testing.T, b *box) {
	parallel(t, "Apart", func(t *testing.T) {
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
	parallel(t, "AtOnce", func(t *testing.T) {
		one, two := b.open(t), b.open(t)
		running(t, one.exec("until [ -e go ]; do sleep 0.02; done; echo went",
			sandbox.Yield(50*time.Millisecond)))
		two.lives()
		two.output(": > " + one.dir + "/go")
		exitedWith(t, one.wait(), 0, "went\n")
	})
	parallel(t, "IDs", func(t *testing.T) {
		require.Equal(t, "main", b.ID())
		seen := map[string]bool{"main": true}
		for range 5 {
			id := b.open(t).ID()
			require.NotEmpty(t, id)
			require.False(t, seen[id], "two sessions have the ID %s", id)
			seen[id] = true
		}
	})
	parallel(t, "Main", func(t *testing.T) {
		main := b.main(t)
		main.output("main_variable=1; cd /")
		same(t, "1 in /\n", main.output(`echo "$main_variable in $PWD"`))
		same(t, "\n", b.open(t).output(`echo "$main_variable"`))
		main.output("cd " + quote(b.home))
	})
	parallel(t, "OpenStartsAtHome", func(t *testing.T) {
		same(t, b.home+"\n", b.openPlain(t).output(`printf '%s\n' "$PWD"`))
	})
	parallel(t, "Env", func(t *testing.T) {
		value := "a=b  'c' \"d\" $HOME \\ é\nsecond line"
		sh := b.open(t, sandbox.Env("PLAIN=1", "VALUE="+value, "TWICE=1"),
			sandbox.Env("TWICE=2", "EMPTY="))
		same(t, "1 2 <> "+value+"\n",
			sh.output(`sh -c 'printf "%s\n" "$PLAIN $TWICE <${EMPTY-unset}> $VALUE"'`))
		same(t, "\n", b.open(t).output(`echo "$PLAIN"`))
	})
	parallel(t, "DirWithStrangeName", func(t *testing.T) {
		dir := b.tmp + "/it's a\n\"dir\" $HOME"
		b.script(t, `mkdir "$1"`, dir)
		res := b.openPlain(t, sandbox.Dir(dir)).exec("pwd")
		same(t, dir+"\n", res.Output)
		require.Equal(t, dir, res.Cwd)
	})
	parallel(t, "DirThatIsNotThere", func(t *testing.T) {
		_, err := b.tryOpen(t, sandbox.Dir(b.tmp+"/nothing"))
		require.ErrorContains(t, err, b.tmp+"/nothing")
	})
	parallel(t, "ClosingOneLeavesOthers", func(t *testing.T) {
		one, two := b.open(t), b.open(t)
		one.close()
		one.close()
		one.fails(sandbox.ErrClosed, "Execute", one.executeCall(":"))
		two.lives()
	})
}

// sessionList checks that Session and Sessions return the open sessions of the box, and no others.
// Other cases open and close sessions of the same box meanwhile.
func sessionList(t *testing.T, b *box) {
	first, second := b.open(t), b.open(t)
	job := b.start(t, ":")
	job.ends(0)
	ids := func() []string {
		var ids []string
		for _, s := range b.Sessions() {
			ids = append(ids, s.ID())
		}
		return ids
	}
	require.Equal(t, "main", ids()[0], "the main session comes first")
	require.NotContains(t, ids(), job.ID(), "a job is no session")
	require.Subset(t, ids(), []string{first.ID(), second.ID()})
	require.Less(t, slices.Index(ids(), first.ID()), slices.Index(ids(), second.ID()),
		"sessions must be in the order in which they were opened")

	first.output("x=1")
	found, ok := b.Session(first.ID())
	require.True(t, ok)
	same(t, "1\n", (&shell{Session: found, b: b, t: t}).output("echo $x"))
	main, ok := b.Session("main")
	require.True(t, ok)
	require.Equal(t, "main", main.ID())
	for _, id := range []string{"", "session-0", job.ID()} {
		_, ok := b.Session(id)
		require.False(t, ok, "Session(%q)", id)
	}

	first.close()
	_, ok = b.Session(first.ID())
	require.False(t, ok, "a closed session is not found")
	require.NotContains(t, ids(), first.ID())
	closed := &shell{Session: found, b: b, t: t}
	closed.fails(sandbox.ErrClosed, "Execute", closed.executeCall(":"))
	second.lives()
}
