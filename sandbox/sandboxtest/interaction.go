package sandboxtest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// interaction answers programs that ask. What is typed is echoed, as a person sees it.
func (s *suite) interaction(t *testing.T) {
	b := s.box(t)
	b.sections(t, []section{
		{"22_Read", reads},
		{"22_Secret", secrets},
		{"23_Questions", questions},
		{"24_REPLs", repls},
		{"25_FullScreen", fullScreen},
		{"26_Unfinished", unfinished},
		{"26_Callers", callers},
		{"26_Results", resultFields},
		{"27_Input", inputs},
		{"27_Until", until},
		{"28_NotWaiting", notWaiting},
		{"28_NotYetWaiting", notYetWaiting},
		{"29_Size", sizes},
	})
}

const ask = `printf 'name? '; read -r n; echo "hello $n"`

// reads has commands that read lines.
func reads(t *testing.T, b *box) {
	b.test(t, "One", func(t *testing.T, sh *shell) {
		res := sh.exec(ask)
		waitingWith(t, res, "name? ", sandbox.Line)
		require.Empty(t, res.Cwd, "Cwd, while the shell is not at its prompt")
		res = sh.input("ann\n")
		exitedWith(t, res, 0, "ann\nhello ann\n")
		require.Equal(t, sh.dir, res.Cwd)
	})
	b.test(t, "ReadP", func(t *testing.T, sh *shell) {
		res := sh.exec(`read -r -p 'name? ' n; echo "hello $n"; (exit 4)`)
		waitingWith(t, res, "name? ", sandbox.Line)
		exitedWith(t, sh.input("ann lee\n"), 4, "ann lee\nhello ann lee\n")
	})
	b.test(t, "TwoInARow", func(t *testing.T, sh *shell) {
		res := sh.exec("printf '1? '; read -r a; printf '2? '; read -r b; echo \"$a and $b\"")
		waitingWith(t, res, "1? ", sandbox.Line)
		waitingWith(t, sh.input("x\n"), "x\n2? ", sandbox.Line)
		exitedWith(t, sh.input("y\n"), 0, "y\nx and y\n")
	})
	b.test(t, "AllAnswersAtOnce", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r a; read -r b; echo \"$a and $b\""), sandbox.Line)
		res := sh.input("x\ny\n")
		exited(t, res, 0)
		require.True(t, strings.HasSuffix(res.Output, "x and y\n"), show(res))
	})
	b.test(t, "Default", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(`printf 'name [ann]: '; read -r n; echo "hello ${n:-ann}"`),
			sandbox.Line)
		exitedWith(t, sh.input("\n"), 0, "\nhello ann\n")
	})
	b.test(t, "HalfALine", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(ask), sandbox.Line)
		waitingWith(t, sh.input("an"), "an", sandbox.Line)
		waiting(t, sh.input(""), sandbox.Line)
		exitedWith(t, sh.input("n\n"), 0, "n\nhello ann\n")
	})
	b.test(t, "WaitReturnsAtOnce", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(ask), sandbox.Line)
		for range 3 {
			waitingWith(t, sh.wait(), "", sandbox.Line)
		}
		exited(t, sh.input("ann\n"), 0)
	})
	// Input returns after the program has read the answer, has worked, and asks again.
	b.test(t, "ALoopOfThem", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(`while read -r l; do echo "got $l"; done; echo end`), sandbox.Line)
		for i := range 50 {
			res := sh.input(fmt.Sprintf("line %d\n", i))
			waitingWith(t, res, fmt.Sprintf("line %d\ngot line %d\n", i, i), sandbox.Line)
		}
		exitedWith(t, sh.input("\x04"), 0, "end\n")
	})
	parallel(t, "Programs", func(t *testing.T) {
		for _, c := range []named{
			{"cat", "cat"}, {"head", "head -n 1"}, {"sh", "sh -c 'read -r x; echo \"$x\"'"},
			{"InAPipeline", "cat | cat"},
			{"InASubshell", "(read -r x; echo \"$x\")"},
			{"Substituted", `x=$(read -r y; echo "$y"); echo "$x"`},
			{"TTY", "read -r x </dev/tty; echo \"$x\""},
			{"AfterOthers", "sleep 0.2; seq 1 100; cat"},
			{"SilentLoop", `while read -r x; do echo "$x"; break; done`},
		} {
			b.test(t, c.name, func(t *testing.T, sh *shell) {
				waiting(t, sh.exec(c.command), sandbox.Line)
				require.Contains(t, sh.input("an answer\n").Output, "an answer\n")
				if strings.HasSuffix(c.command, "cat") {
					exited(t, sh.input("\x04"), 0)
				}
			})
		}
	})
	b.test(t, "Python", func(t *testing.T, sh *shell) {
		b.need(t, "python3")
		res := sh.exec(`python3 -c 'n = input("name? "); print("hello", n)'`)
		waitingWith(t, res, "name? ", sandbox.Line)
		exitedWith(t, sh.input("ann\n"), 0, "ann\nhello ann\n")
	})
}

// secrets has commands that read without echo.
func secrets(t *testing.T, b *box) {
	for _, c := range []struct{ name, needs, command string }{
		{"ReadS", "bash: read -s",
			`read -r -s -p 'password: ' p; echo; echo "${#p} characters"`},
		{"Stty", "",
			`printf 'password: '; stty -echo; read -r p; stty echo; echo; echo "${#p} characters"`},
		{"Getpass", "python3", "python3 -c 'import getpass; " +
			`print(len(getpass.getpass("password: ")), "characters")'`},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			res := sh.exec(c.command)
			waiting(t, res, sandbox.Secret)
			same(t, "password: ", strings.TrimLeft(res.Output, "\n"))
			exitedWith(t, sh.input("hunter2\n"), 0, "\n7 characters\n")
			sh.askAndAnswer() // echo is on again
		})
	}
	// The terminal's settings are reset with the command.
	b.test(t, "InterruptedWithoutEcho", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("sh -c 'stty -echo; read -r x'"), sandbox.Secret)
		exited(t, sh.interrupt(), 130)
		sh.askAndAnswer()
	})
}

// unfinished makes calls that a busy or an idle session refuses.
func unfinished(t *testing.T, b *box) {
	b.test(t, "EndedUnseen", endedUnseen)
	b.test(t, "ExecuteAtOnce", executeAtOnce)
	b.test(t, "Busy", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(ask), sandbox.Line)
		sh.fails(sandbox.ErrBusy, "Execute", sh.executeCall("echo other"))
		exitedWith(t, sh.input("ann\n"), 0, "ann\nhello ann\n")
		m := sh.sleeps()
		sh.fails(sandbox.ErrBusy, "Execute", sh.executeCall("echo other"))
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
	})
	b.test(t, "Idle", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		idle := func() {
			sh.fails(sandbox.ErrIdle, "Input", sh.inputCall("echo typed\n"))
			sh.fails(sandbox.ErrIdle, "Wait", sh.waitCall())
			sh.fails(sandbox.ErrIdle, "Interrupt", sh.interruptCall())
		}
		idle()
		sh.lives()
		idle()
		sh.exec("exit 3")
		idle()
	})
	// A stop button does this.
	b.test(t, "InterruptFromAnotherGoroutine", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		done := make(chan error)
		go func() {
			done <- errorOf(attempt("Execute",
				sh.executeCall("echo started; sleep "+string(m))))
		}()
		b.alive(t, m, 1)
		exited(t, sh.interrupt(), 130)
		require.NoError(t, <-done, "the Execute that was interrupted")
		b.gone(t, m)
	})
}

// endedUnseen lets a command end while no call waits: the next caller gets its Result.
func endedUnseen(t *testing.T, sh *shell) {
	goOn := func() {
		sh.b.script(t, `cd "$1" && : > go; until [ -e gone ]; do sleep 0.02; done; rm go gone`,
			sh.dir)
		sh.b.eventually(t, func() bool {
			return errors.Is(sh.Type(t.Context(), ""), sandbox.ErrIdle)
		}, "the command's end")
	}
	const command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; : > gone; " +
		"(exit 6)"
	begun := sandbox.Until(regexp.MustCompile("one\n"))
	runningWith(t, sh.exec(command, begun), "one\n")
	goOn()
	exitedWith(t, sh.wait(), 6, "two\n")
	sh.fails(sandbox.ErrIdle, "Wait", sh.waitCall())
	running(t, sh.exec(command, begun))
	goOn()
	exitedWith(t, sh.interrupt(), 6, "two\n")
	running(t, sh.exec(command, begun))
	goOn()
	sh.lives() // Execute drops it
	sh.fails(sandbox.ErrIdle, "Wait", sh.waitCall())
}

// executeAtOnce calls Execute from many goroutines: each command runs whole, or the error is
// ErrBusy.
func executeAtOnce(t *testing.T, sh *shell) {
	answers := make(chan answer)
	const n = 20
	for i := range n {
		go func() {
			res, err := attempt("Execute", sh.executeCall(fmt.Sprintf("echo %d; sleep 0.05", i)))
			answers <- answer{res, err}
		}()
	}
	var done int
	for range n {
		a := <-answers
		if a.err == nil {
			done++
			exited(t, a.res, 0)
			require.Regexp(t, `^\d+\n$`, a.res.Output)
			continue
		}
		require.ErrorIs(t, a.err, sandbox.ErrBusy)
	}
	require.NotZero(t, done, "commands that ran")
}
