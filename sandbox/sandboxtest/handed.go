package sandboxtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// handed: exec hands the shell's place to a program, which is the command then, or to a shell,
// which is the session's.
func handed(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, shell, needs string }{{"Bash", "bash -c", "bash"},
		{"Sh", "sh -c", ""}, {"Ash", "busybox ash -c", "busybox"}} {
		// it reads what is typed, and nothing of ours
		t.Run("ProgramThatAsks/"+c.name, func(t *testing.T) {
			t.Parallel()
			if c.needs != "" && !b.has(t, c.needs) {
				b.suite.skip(t, "no "+c.needs+" in this box")
			}
			sh := b.open(t)
			res := sh.exec("exec " + c.shell + ` 'printf "name? "; read -r x; echo "<$x>"; exit 4'`)
			waiting(t, res, sandbox.Line)
			same(t, "name? ", res.Output)
			res = sh.input("ann\n")
			exited(t, res, 4)
			same(t, "ann\n<ann>\n", res.Output)
			require.True(t, res.Restarted, "Restarted")
			sh.usable()
		})
	}
	t.Run("Script", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output(`printf 'read -r x\necho "<$x>"\nexit 4\n' > s`)
		waiting(t, sh.exec("exec sh s"), sandbox.Line)
		res := sh.input("ann\n")
		exited(t, res, 4)
		same(t, "ann\n<ann>\n", res.Output)
		sh.usable()
	})
	t.Run("InputFromNull", func(t *testing.T) { // what comes after it runs
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("exec 0</dev/null"), 0)
		for range 3 {
			res := sh.exec("echo ran; (exit 3)")
			exited(t, res, 3)
			same(t, "ran\n", res.Output)
		}
		sh.lives()
	})
	for _, c := range []struct{ name, command, needs string }{
		{"Bash", "exec bash", "bash"}, {"BashPlain", "exec bash --norc -i", "bash"},
		{"Sh", "exec sh -i", ""}, {"Dash", "exec dash", "dash"},
	} {
		t.Run("Shell/"+c.name, func(t *testing.T) {
			t.Parallel()
			if c.needs != "" && !b.has(t, c.needs) {
				b.suite.skip(t, "no "+c.needs+" in this box")
			}
			sh := b.open(t)
			sh.output("mkdir sub; cd sub; HANDED='a  b'; export HANDED; gone=1")
			res := sh.exec(c.command)
			exited(t, res)
			require.True(t, res.Restarted, "Restarted")
			require.Equal(t, sh.dir+"/sub", res.Cwd, "Cwd")
			same(t, "<a  b> <> "+sh.dir+"/sub\n", sh.output(`echo "<$HANDED> <$gone> $PWD"`))
			sh.output("cd ..")
			sh.usable()
		})
	}
	t.Run("Exit", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output("mkdir 'a sub'; cd 'a sub'")
		res := sh.exec("exit 3")
		exited(t, res, 3)
		require.True(t, res.Restarted, "Restarted")
		require.Equal(t, sh.dir+"/a sub", res.Cwd, "Cwd")
		same(t, sh.dir+"/a sub\n", sh.output("pwd"))
	})
}
