package sandboxtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// shellEnd: a command may end the shell, replace it, or take away what the engine stands on. Its
// status is told, a shell is there again, and nothing hangs.
func (s *suite) shellEnd(t *testing.T) {
	b := s.box(t)
	t.Run("20_Ends", func(t *testing.T) { ends(t, b) })
	t.Run("20_Replaced", func(t *testing.T) { replaced(t, b) })
	t.Run("20_WhatIsKept", func(t *testing.T) { keptAcrossRestarts(t, b) })
	t.Run("20_Handed", func(t *testing.T) { handed(t, b) })
	t.Run("21_Disturbed", func(t *testing.T) { disturbed(t, b) })
	t.Run("21_Redirected", func(t *testing.T) { redirected(t, b) })
}

func ends(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct {
		name, command, want string
		code                int
	}{
		{"Exit", "exit", "", 0},
		{"Exit7", "exit 7", "", 7},
		{"ExitAfterFalse", "false; exit", "", 1},
		{"ExitInTheMiddle", "echo a\nexit 4\necho b", "a\n", 4},
		{"ExitInAFunction", "f() { exit 5; }; f; echo b", "", 5},
		{"ExitInASourcedFile", "echo 'exit 6' > f; . ./f; echo b", "", 6},
		{"SetE", "set -e; echo a; false; echo b", "a\n", 1},
		{"SetEInTheNext", "set -e", "", 0},
		{"SetEAndAPipeline", "set -e; echo a; true | (exit 3); echo b", "a\n", 3},
		{"Exec", "exec sleep 0.1", "", 0},
		{"ExecFalse", "exec false", "", 1},
		{"ExecWithOutput", "exec echo a", "a\n", 0},
		{"ExecStatus", "exec sh -c 'printf a; exit 9'", "a", 9},
		{"Kill", "kill -9 $$", "", 137},
		{"KillHangUp", "kill -HUP $$; sleep 5", "", 129},
		{"KillInAScript", "echo a; sh -c 'kill -9 $PPID'; sleep 5", "a\n", 137},
		{"Abort", "kill -ABRT $$; sleep 5", "", 134},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			res := sh.exec(c.command)
			if c.name == "SetEInTheNext" {
				exited(t, res, 0)
				require.False(t, res.Restarted, "Restarted")
				c.code, res = 1, sh.exec("false")
			}
			exited(t, res, c.code)
			require.True(t, res.Restarted, "Restarted")
			require.Equal(t, sh.dir, res.Cwd)
			// An interactive bash says "exit", and who killed it may be told: a person sees that
			// too.
			require.Truef(t, len(res.Output) >= len(c.want) && res.Output[:len(c.want)] == c.want,
				"output %q does not begin with %q", res.Output, c.want)
			require.NotContains(t, res.Output, "b\n")
			res = sh.exec(`printf '%s\n' "<$MARK> in $PWD"`)
			same(t, "<> in "+sh.dir+"\n", res.Output) // a fresh one
			require.False(t, res.Restarted, "Restarted, in the next Result")
			sh.usable()
		})
	}
	t.Run("ExitWithABackgroundProcess", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		res := sh.exec("sleep " + string(m) + " & exit 3")
		exited(t, res, 3)
		require.True(t, res.Restarted, "Restarted")
		sh.usable()
	})
	t.Run("ExitWithAStoppedProcess", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		b.alive(t, m, 1)
		exited(t, sh.input("\x1a"), 148)
		exited(t, sh.exec("exit 3")) // the shell may say no, once
		sh.usable()
	})
	t.Run("EndOfInput", func(t *testing.T) { // ^D ends read, and then it must not end the shell
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("read -r x"), sandbox.Line)
		exited(t, sh.input("\x04"), 1)
		sh.lives()
	})
	t.Run("ExitAfterAnAnswer", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("read -r x; exit $x"), sandbox.Line)
		res := sh.input("8\n")
		exited(t, res, 8)
		require.True(t, res.Restarted, "Restarted")
		sh.usable()
	})
	t.Run("ManyTimes", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		for i := range 20 {
			res := sh.exec("exit " + string(rune('0'+i%10)))
			exited(t, res, i%10)
			require.True(t, res.Restarted, "Restarted")
		}
		sh.usable()
	})
	t.Run("KilledFromOutside", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		pid := sh.output("printf '%s' $$")
		running(t, sh.exec("while :; do :; done", sandbox.Yield(100*time.Millisecond)))
		b.script(t, `kill -9 "$1"`, pid)
		res := sh.wait()
		exited(t, res, 137)
		require.True(t, res.Restarted, "Restarted")
		sh.usable()
	})
	t.Run("KilledFromOutsideWhileIdle", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		pid := sh.output("printf '%s' $$")
		b.script(t, `kill -9 "$1"; while kill -0 "$1" 2>/dev/null; do sleep 0.02; done`, pid)
		within(b, t, "Execute", sh.executes(":")) // may report what has happened, or hide it
		sh.usable()
	})
	t.Run("MainSession", func(t *testing.T) {
		t.Parallel()
		main := &shell{Session: b.Sandbox, b: b, t: t, dir: b.home}
		res := main.exec("exit 7")
		exited(t, res, 7)
		require.True(t, res.Restarted, "Restarted")
		main.usable()
	})
}

// replaced: exec of another shell. The command has ended when that one is at its prompt.
func replaced(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, command, needs string }{
		{"Bash", "exec bash", "bash"},
		{"BashWithoutProfile", "exec bash --norc --noprofile", "bash"},
		{"Sh", "exec sh", ""},
		{"ShInteractive", "exec sh -i", ""},
		{"Dash", "exec dash", "dash"},
		{"Ash", "exec busybox ash", "busybox"},
		{"LoginShell", "exec sh -l", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.needs != "" && !b.has(t, c.needs) {
				b.suite.skip(t, "no "+c.needs+" in this box")
			}
			sh := b.open(t)
			sh.output("export MARK")
			res := sh.exec(c.command)
			require.Equalf(t, sandbox.Exited, res.State, "%s", show(res))
			for range 2 {
				sh.usable()
			}
			exited(t, sh.exec("(exit 42)"), 42)
			same(t, lines(1, 100), sh.output("seq 1 100"))
			waiting(t, sh.exec("read -r x; echo \"got $x\""), sandbox.Line)
			require.Contains(t, sh.input("y\n").Output, "got y\n")
			sh.timeout(100*time.Millisecond, "sleep 1000")
			sh.usable()
			res = sh.exec("exit 6")
			exited(t, res, 6)
			require.True(t, res.Restarted, "Restarted")
			sh.usable()
		})
	}
	t.Run("ByAProgramThatGoesOn", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("exec sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		b.alive(t, m, 1)
		res := sh.interrupt()
		exited(t, res, 130)
		require.True(t, res.Restarted, "Restarted")
		b.gone(t, m)
		sh.usable()
	})
	t.Run("ByAProgramThatReads", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("exec cat"), sandbox.Line)
		waiting(t, sh.input("a\n"), sandbox.Line)
		res := sh.input("\x04")
		exited(t, res, 0)
		require.True(t, res.Restarted, "Restarted")
		sh.usable()
	})
	t.Run("ByNothing", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("exec nosuchcommand"), 126, 127)
		sh.usable()
	})
}

// keptAcrossRestarts: what the session was opened with belongs to its next shell too.
func keptAcrossRestarts(t *testing.T, b *box) {
	t.Parallel()
	sh := b.open(t, sandbox.Env("KEPT=yes"), sandbox.Size(30, 100))
	sh.output("stty -echo; export LOST=1")
	id := sh.ID()
	require.True(t, sh.exec("exit 7").Restarted, "Restarted")
	same(t, "yes <>\n", sh.output(`echo "$KEPT <$LOST>"`))
	same(t, "30 100\n", sh.output("stty size"))
	sh.resize(40, 90)
	require.True(t, sh.exec("exit 7").Restarted, "Restarted")
	same(t, "40 90\n", sh.output("stty size"))
	require.Equal(t, id, sh.ID())
	waiting(t, sh.exec("read -r x"), sandbox.Line) // it echoes again
	same(t, "abc\n", sh.input("abc\n").Output)
	sh.usable()
}

func disturbed(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, command, needs string }{
		{"UnsetPS1", "unset PS1", ""},
		{"PS1", "PS1=x", ""},
		{"EmptyPS1", "PS1=", ""},
		{"ReadonlyPS1", "PS1='$ '; readonly PS1", ""},
		{"ReadonlyPS1AsItIs", "readonly PS1", ""},
		{"ReadonlyPWD", "readonly PWD", ""},
		{"UnsetPWD", "unset PWD OLDPWD; PWD=$(pwd)", ""},
		{"ManyUnset", "unset PS1 PS2 PS4 IFS TERM PROMPT_COMMAND ENV", ""},
		{"SttySane", "stty sane", ""},
		{"SttyRaw", "stty raw -echo", ""},
		{"SttyRawEcho", "stty raw", ""},
		{"SttyNoEcho", "stty -echo", ""},
		{"SttyCbreak", "stty -icanon min 1 time 0", ""},
		{"SttyMin0", "stty -icanon min 0 time 0", ""},
		{"SttyNoISig", "stty -isig", ""},
		{"SttyINTR", "stty intr ^X susp ^Y eof ^B", ""},
		{"SttyOnlcr", "stty onlcr", ""},
		{"SttyNoOpost", "stty -opost", ""},
		{"SttyNoIcrnl", "stty -icrnl inlcr", ""},
		{"SttySize", "stty rows 10 cols 20", ""},
		{"Reset", "reset", "reset"},
		{"Clear", "clear", "clear"},
		{"AlternateScreenLeftOn", `printf '\033[?1049h'`, ""},
		{"ColoursAndCharsetLeftOn", `printf '\033[31m\033(0\016'`, ""},
		{"TrapINT", "trap '' INT", ""},
		{"TrapAll", "trap '' INT TERM QUIT TSTP TTIN TTOU HUP", ""},
		{"SetN", "set -n", ""},
		{"CloseOthers", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-", ""},
		{"NoStandardError", "exec 2>/dev/null", ""},
		{"StandardErrorClosed", "exec 2>&-", ""},
		{"Disabled", "enable -n printf test kill", "bash: enable"},
		{"FunctionsOverBuiltins", "printf() { command printf \"$@\"; }; test() { false; }", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
			res := sh.exec(c.command)
			require.Equalf(t, sandbox.Exited, res.State, "%s", show(res))
			// Where the shell reads its commands, some of this cannot be lived with: a fresh shell
			// is as good.
			// its reads come to an end at once, or it executes nothing: it ends sooner or later
			if c.name == "SttyMin0" || c.name == "SetN" {
				for range 5 {
					sh.exec("stty sane")
				}
			}
			lives := sh.lives
			if res.Restarted || c.name == "SetN" || c.name == "SttyMin0" ||
				c.name == "StandardErrorClosed" {
				lives = sh.usable
			}
			for range 3 {
				lives()
			}
			same(t, "a\nb\n", sh.output(`printf 'a\nb\n'`))
			m := b.marker(t)
			sh.timeout(200*time.Millisecond, "sleep "+string(m))
			b.gone(t, m)
			sh.usable()
		})
	}
}

// redirected: the shell's own standard streams are changed for good.
func redirected(t *testing.T, b *box) {
	t.Parallel()
	t.Run("OutputToNull", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("exec >/dev/null"), 0)
		res := sh.exec("echo lost; (exit 5)")
		exited(t, res, 5)
		require.Empty(t, res.Output)
		require.Equal(t, sh.dir, res.Cwd)
		exited(t, sh.exec("exec >/dev/tty"), 0)
		sh.lives()
	})
	t.Run("OutputToFile", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("exec >log"), 0)
		exited(t, sh.exec("echo one; (exit 5)"), 5)
		exited(t, sh.exec("echo two"), 0)
		exited(t, sh.exec("exec >/dev/tty"), 0)
		same(t, "one\ntwo\n", sh.output("cat log")) // and nothing of the engine's
		sh.lives()
	})
	t.Run("AllToNull", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("exec >/dev/null 2>&1"))
		exited(t, sh.exec("echo lost; (exit 5)"), 5)
		exited(t, sh.exec("exec >/dev/tty 2>&1"))
		sh.usable()
	})
	t.Run("OutputClosed", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec("exec >&-"))
		exited(t, sh.exec("(exit 5)"), 5)
		exited(t, sh.exec("exec >/dev/tty"))
		sh.usable()
	})
	t.Run("OutputIntoAPipe", func(t *testing.T) {
		t.Parallel()
		b.need(t, "bash: >( )")
		sh := b.open(t)
		exited(t, sh.exec("exec > >(cat)"))
		exited(t, sh.exec("(exit 5)"), 5)
		exited(t, sh.exec("exec >/dev/tty"))
		sh.usable()
	})
	for _, c := range []named{
		{"InputClosed", "exec <&-"},
		{"InputFromNull", "exec </dev/null"},
		{"InputFromFile", "echo 'echo from the file' > f; exec < f"},
		{"AllClosed", "exec <&- >&- 2>&-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			exited(t, sh.exec(c.command))
			// What becomes of the next command is the shell's affair, that one comes in the end is
			// ours.
			within(b, t, "Execute", sh.executes("exec </dev/tty >/dev/tty 2>&1"))
			within(b, t, "Execute", sh.executes(":"))
			sh.usable()
		})
	}
}
