package sandboxtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// shellEnd tries commands that end the shell, replace it, or change what an implementation relies
// on. The command's status is reported, the session has a shell again, and nothing hangs.
func (s *suite) shellEnd(t *testing.T) {
	b := s.box(t)
	b.sections(t, []section{
		{"20_Ends", ends},
		{"20_Replaced", replaced},
		{"20_WhatIsKept", keptAcrossRestarts},
		{"20_Handed", execs},
		{"21_Disturbed", disturbed},
		{"21_Redirected", redirected},
		{"21_Tampered", tampered},
		{"21_Descriptors", descriptors},
	})
}

// ends executes commands that end the shell.
func ends(t *testing.T, b *box) {
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
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			res := sh.exec(c.command)
			if c.name == "SetEInTheNext" {
				exited(t, res, 0)
				require.False(t, res.Restarted, "Restarted")
				c.code, res = 1, sh.exec("false")
			}
			sh.restarted(res, c.code)
			require.Equal(t, sh.dir, res.Cwd, "Cwd")
			// More may follow, as on a person's screen: an interactive bash says "exit".
			require.Truef(t, strings.HasPrefix(res.Output, c.want),
				"output %q does not begin with %q", res.Output, c.want)
			require.NotContains(t, res.Output, "b\n")
			res = sh.exec(`printf '%s\n' "<$MARK> in $PWD"`)
			same(t, "<> in "+sh.dir+"\n", res.Output)
			require.False(t, res.Restarted, "Restarted, in the Result of the next command")
		})
	}
	b.test(t, "ExitWithABackgroundProcess", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		sh.restarted(sh.exec("sleep "+string(m)+" & exit 3"), 3)
	})
	b.test(t, "ExitWithAStoppedProcess", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		sh.sleeps()
		exited(t, sh.input("\x1a"), 148)
		exited(t, sh.exec("exit 3")) // the first exit may only warn of stopped jobs
	})
	// ^D ends read, but not the shell.
	b.test(t, "EndOfInput", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r x"), sandbox.Line)
		exited(t, sh.input("\x04"), 1)
	})
	b.test(t, "ExitAfterAnAnswer", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r x; exit $x"), sandbox.Line)
		sh.restarted(sh.input("8\n"), 8)
	})
	b.test(t, "ManyTimes", func(t *testing.T, sh *shell) {
		for i := range 20 {
			sh.restarted(sh.exec(fmt.Sprint("exit ", i)), i)
		}
	})
	parallel(t, "MainSession", func(t *testing.T) {
		main := b.main(t)
		main.restarted(main.exec("exit 7"), 7)
		main.goesOn()
	})
	killedFromOutside(t, b)
}

// killedFromOutside kills the shell by another program.
func killedFromOutside(t *testing.T, b *box) {
	b.test(t, "KilledFromOutside", func(t *testing.T, sh *shell) {
		pid := sh.output("printf '%s' $$")
		running(t, sh.exec("while :; do :; done", sandbox.Yield(100*time.Millisecond)))
		b.script(t, `kill -9 "$1"`, pid)
		sh.restarted(sh.wait(), 137)
	})
	b.test(t, "KilledFromOutsideWhileIdle", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		pid := sh.output("printf '%s' $$")
		b.script(t, `kill -9 "$1"; while kill -0 "$1" 2>/dev/null; do sleep 0.02; done`, pid)
		within(b, t, "Execute", sh.executeCall(":")) // may report the shell's end, or not
	})
}

// replaced tries exec of another shell. The command has ended when that shell is at its prompt.
func replaced(t *testing.T, b *box) {
	for _, c := range []struct{ name, command, needs string }{
		{"Bash", "exec bash", "bash"},
		{"BashWithoutProfile", "exec bash --norc --noprofile", "bash"},
		{"Sh", "exec sh", ""},
		{"ShInteractive", "exec sh -i", ""},
		{"Dash", "exec dash", "dash"},
		{"Ash", "exec busybox ash", "busybox"},
		{"LoginShell", "exec sh -l", ""},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			sh.output("export MARK")
			res := sh.exec(c.command)
			require.Equalf(t, sandbox.Exited, res.State, "%s", show(res))
			sh.usable()
			sh.usable()
			exited(t, sh.exec("(exit 42)"), 42)
			same(t, lines(1, 100), sh.output("seq 1 100"))
			waiting(t, sh.exec("read -r x; echo \"got $x\""), sandbox.Line)
			require.Contains(t, sh.input("y\n").Output, "got y\n")
			sh.timeout(100*time.Millisecond, "sleep 1000")
			sh.usable()
			sh.restarted(sh.exec("exit 6"), 6)
		})
	}
	b.test(t, "ByAProgramThatGoesOn", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		running(t, sh.exec("exec sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		b.alive(t, m, 1)
		sh.restarted(sh.interrupt(), 130)
		b.gone(t, m)
	})
	b.test(t, "ByAProgramThatReads", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("exec cat"), sandbox.Line)
		waiting(t, sh.input("a\n"), sandbox.Line)
		sh.restarted(sh.input("\x04"), 0)
	})
	b.test(t, "ByNothing", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		exited(t, sh.exec("exec nosuchcommand"), 126, 127)
	})
}

// keptAcrossRestarts checks that a restarted shell has the session's options.
func keptAcrossRestarts(t *testing.T, b *box) {
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
	sh.askAndAnswer() // echo is on again
	sh.usable()
}

func disturbed(t *testing.T, b *box) {
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
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			res := sh.exec(c.command)
			require.Equalf(t, sandbox.Exited, res.State, "%s", show(res))
			// If it reads its commands from the terminal, the shell cannot go on after some of
			// these: its reads return at once, or it executes nothing. A fresh shell will do.
			if c.name == "SttyMin0" || c.name == "SetN" {
				for range 5 {
					sh.exec("stty sane")
				}
			}
			sh.mayRestart = res.Restarted || c.name == "SetN" || c.name == "SttyMin0" ||
				c.name == "StandardErrorClosed"
			times(3, sh.goesOn)
			same(t, "a\nb\n", sh.output(`printf 'a\nb\n'`))
			sh.timesOut()
			sh.mayRestart = true
		})
	}
}

// redirected: the shell's own standard streams are changed for good.
func redirected(t *testing.T, b *box) {
	b.test(t, "OutputToNull", func(t *testing.T, sh *shell) {
		exited(t, sh.exec("exec >/dev/null"), 0)
		res := sh.exec("echo lost; (exit 5)")
		exited(t, res, 5)
		require.Empty(t, res.Output)
		require.Equal(t, sh.dir, res.Cwd)
		exited(t, sh.exec("exec >/dev/tty"), 0)
	})
	b.test(t, "OutputToFile", func(t *testing.T, sh *shell) {
		exited(t, sh.exec("exec >log"), 0)
		exited(t, sh.exec("echo one; (exit 5)"), 5)
		exited(t, sh.exec("echo two"), 0)
		exited(t, sh.exec("exec >/dev/tty"), 0)
		same(t, "one\ntwo\n", sh.output("cat log"))
	})
	for _, c := range []struct{ name, away, command, back, needs string }{
		{"AllToNull", "exec >/dev/null 2>&1", "echo lost; (exit 5)", "exec >/dev/tty 2>&1", ""},
		{"OutputClosed", "exec >&-", "(exit 5)", "exec >/dev/tty", ""},
		{"OutputIntoAPipe", "exec > >(cat)", "(exit 5)", "exec >/dev/tty", "bash: >( )"},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			sh.mayRestart = true
			exited(t, sh.exec(c.away))
			exited(t, sh.exec(c.command), 5)
			exited(t, sh.exec(c.back))
		})
	}
	for _, c := range []named{
		{"InputClosed", "exec <&-"},
		{"InputFromNull", "exec </dev/null"},
		{"InputFromFile", "echo 'echo from the file' > f; exec < f"},
		{"AllClosed", "exec <&- >&- 2>&-"},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			sh.mayRestart = true
			exited(t, sh.exec(c.command))
			// The next command may be lost, but the session has a shell in the end.
			within(b, t, "Execute", sh.executeCall("exec </dev/tty >/dev/tty 2>&1"))
			within(b, t, "Execute", sh.executeCall(":"))
		})
	}
}

// execs replaces the shell with exec: by a program, which is then the command, or by a shell, which
// is then the session's.
func execs(t *testing.T, b *box) {
	for _, c := range []struct{ name, shell, needs string }{{"Bash", "bash -c", "bash"},
		{"Sh", "sh -c", ""}, {"Ash", "busybox ash -c", "busybox"}} {
		// The program reads Input, and nothing that the implementation types.
		b.test(t, "ProgramThatAsks/"+c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			res := sh.exec("exec " + c.shell + ` 'printf "name? "; read -r x; echo "<$x>"; exit 4'`)
			waitingWith(t, res, "name? ", sandbox.Line)
			res = sh.input("ann\n")
			sh.restarted(res, 4)
			same(t, "ann\n<ann>\n", res.Output)
		})
	}
	b.test(t, "Script", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		sh.output(`printf 'read -r x\necho "<$x>"\nexit 4\n' > s`)
		waiting(t, sh.exec("exec sh s"), sandbox.Line)
		exitedWith(t, sh.input("ann\n"), 4, "ann\n<ann>\n")
	})
	// The shell still gets its commands.
	b.test(t, "InputFromNull", func(t *testing.T, sh *shell) {
		exited(t, sh.exec("exec 0</dev/null"), 0)
		for range 3 {
			exitedWith(t, sh.exec("echo ran; (exit 3)"), 3, "ran\n")
		}
	})
	for _, c := range []struct{ name, command, needs string }{
		{"Bash", "exec bash", "bash"}, {"BashPlain", "exec bash --norc -i", "bash"},
		{"Sh", "exec sh -i", ""}, {"Dash", "exec dash", "dash"},
	} {
		b.test(t, "Shell/"+c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			sh.mayRestart = true
			sh.output("mkdir sub; cd sub; HANDED='a  b'; export HANDED; gone=1")
			res := sh.exec(c.command)
			exited(t, res)
			require.True(t, res.Restarted, "Restarted")
			require.Equal(t, sh.dir+"/sub", res.Cwd, "Cwd")
			same(t, "<a  b> <> "+sh.dir+"/sub\n", sh.output(`echo "<$HANDED> <$gone> $PWD"`))
			sh.output("cd ..")
		})
	}
	b.test(t, "Exit", func(t *testing.T, sh *shell) {
		sh.output("mkdir 'a sub'; cd 'a sub'")
		res := sh.exec("exit 3")
		sh.restarted(res, 3)
		require.Equal(t, sh.dir+"/a sub", res.Cwd, "Cwd")
		same(t, sh.dir+"/a sub\n", sh.output("pwd"))
		sh.output("cd ..")
	})
}
