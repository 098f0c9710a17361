package sandboxtest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// interaction: a program that asks is answered. What is typed is echoed, as a person sees it.
func (s *suite) interaction(t *testing.T) {
	b := s.box(t)
	t.Run("22_Read", func(t *testing.T) { reads(t, b) })
	t.Run("22_Secret", func(t *testing.T) { secrets(t, b) })
	t.Run("23_Questions", func(t *testing.T) { questions(t, b) })
	t.Run("24_REPLs", func(t *testing.T) { repls(t, b) })
	t.Run("25_FullScreen", func(t *testing.T) { fullScreen(t, b) })
	t.Run("26_Unfinished", func(t *testing.T) { unfinished(t, b) })
	t.Run("26_Callers", func(t *testing.T) { callers(t, b) })
	t.Run("26_Results", func(t *testing.T) { resultFields(t, b) })
	t.Run("27_Input", func(t *testing.T) { inputs(t, b) })
	t.Run("27_Until", func(t *testing.T) { until(t, b) })
	t.Run("28_NotWaiting", func(t *testing.T) { notWaiting(t, b) })
	t.Run("28_NotYetWaiting", func(t *testing.T) { notYetWaiting(t, b) })
	t.Run("29_Size", func(t *testing.T) { sizes(t, b) })
}

const ask = `printf 'name? '; read -r n; echo "hello $n"`

func reads(t *testing.T, b *box) {
	t.Parallel()
	t.Run("One", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec(ask)
		waiting(t, res, sandbox.Line)
		same(t, "name? ", res.Output)
		require.Empty(t, res.Cwd, "Cwd, while the shell is not at its prompt")
		res = sh.input("ann\n")
		exited(t, res, 0)
		same(t, "ann\nhello ann\n", res.Output)
		require.Equal(t, sh.dir, res.Cwd)
		sh.lives()
	})
	t.Run("ReadP", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec(`read -r -p 'name? ' n; echo "hello $n"; (exit 4)`)
		waiting(t, res, sandbox.Line)
		same(t, "name? ", res.Output)
		res = sh.input("ann lee\n")
		exited(t, res, 4)
		same(t, "ann lee\nhello ann lee\n", res.Output)
		sh.lives()
	})
	t.Run("TwoInARow", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("printf '1? '; read -r a; printf '2? '; read -r b; echo \"$a and $b\"")
		waiting(t, res, sandbox.Line)
		same(t, "1? ", res.Output)
		res = sh.input("x\n")
		waiting(t, res, sandbox.Line)
		same(t, "x\n2? ", res.Output)
		res = sh.input("y\n")
		exited(t, res, 0)
		same(t, "y\nx and y\n", res.Output)
		sh.lives()
	})
	t.Run("AllAnswersAtOnce", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("read -r a; read -r b; echo \"$a and $b\""), sandbox.Line)
		res := sh.input("x\ny\n")
		exited(t, res, 0)
		require.True(t, strings.HasSuffix(res.Output, "x and y\n"), show(res))
		sh.lives()
	})
	t.Run("Default", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(`printf 'name [ann]: '; read -r n; echo "hello ${n:-ann}"`),
			sandbox.Line)
		res := sh.input("\n")
		exited(t, res, 0)
		same(t, "\nhello ann\n", res.Output)
		sh.lives()
	})
	t.Run("HalfALine", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(ask), sandbox.Line)
		res := sh.input("an")
		waiting(t, res, sandbox.Line)
		same(t, "an", res.Output)
		waiting(t, sh.input(""), sandbox.Line)
		res = sh.input("n\n")
		exited(t, res, 0)
		same(t, "n\nhello ann\n", res.Output)
		sh.lives()
	})
	t.Run("WaitReturnsAtOnce", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(ask), sandbox.Line)
		for range 3 {
			res := sh.wait()
			waiting(t, res, sandbox.Line)
			same(t, "", res.Output)
		}
		exited(t, sh.input("ann\n"), 0)
		sh.lives()
	})
	// each answer is read, worked on and the next waited for before Input returns
	t.Run("ALoopOfThem", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(`while read -r l; do echo "got $l"; done; echo end`), sandbox.Line)
		for i := range 50 {
			res := sh.input(fmt.Sprintf("line %d\n", i))
			waiting(t, res, sandbox.Line)
			same(t, fmt.Sprintf("line %d\ngot line %d\n", i, i), res.Output)
		}
		res := sh.input("\x04")
		exited(t, res, 0)
		same(t, "end\n", res.Output)
		sh.lives()
	})
	t.Run("Programs", func(t *testing.T) {
		t.Parallel()
		for _, c := range []named{
			{"cat", "cat"}, {"head", "head -n 1"}, {"sh", "sh -c 'read -r x; echo \"$x\"'"},
			{"InAPipeline", "cat | cat"},
			{"InASubshell", "(read -r x; echo \"$x\")"},
			{"Substituted", `x=$(read -r y; echo "$y"); echo "$x"`},
			{"TTY", "read -r x </dev/tty; echo \"$x\""},
			{"AfterOthers", "sleep 0.2; seq 1 100; cat"},
			{"SilentLoop", `while read -r x; do echo "$x"; break; done`},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				sh := b.open(t)
				waiting(t, sh.exec(c.command), sandbox.Line)
				require.Contains(t, sh.input("an answer\n").Output, "an answer\n")
				if strings.HasSuffix(c.command, "cat") {
					exited(t, sh.input("\x04"), 0)
				}
				sh.lives()
			})
		}
	})
	t.Run("Python", func(t *testing.T) {
		t.Parallel()
		b.need(t, "python3")
		sh := b.open(t)
		res := sh.exec(`python3 -c 'n = input("name? "); print("hello", n)'`)
		waiting(t, res, sandbox.Line)
		same(t, "name? ", res.Output)
		res = sh.input("ann\n")
		exited(t, res, 0)
		same(t, "ann\nhello ann\n", res.Output)
		sh.lives()
	})
}

func secrets(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []named{
		{"ReadS", `read -r -s -p 'password: ' p; echo; echo "${#p} characters"`},
		{"Stty", `printf 'password: '; stty -echo; read -r p; stty echo; echo; echo "${#p} characters"`},
		{"Getpass", `python3 -c 'import getpass; print(len(getpass.getpass("password: ")), "characters")'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			switch c.name {
			case "ReadS":
				b.need(t, "bash: read -s")
			case "Getpass":
				b.need(t, "python3")
			}
			sh := b.open(t)
			res := sh.exec(c.command)
			waiting(t, res, sandbox.Secret)
			same(t, "password: ", strings.TrimLeft(res.Output, "\n"))
			res = sh.input("hunter2\n")
			exited(t, res, 0)
			same(t, "\n7 characters\n", res.Output)
			waiting(t, sh.exec(ask), sandbox.Line) // echo is on again
			same(t, "ann\nhello ann\n", sh.input("ann\n").Output)
			sh.lives()
		})
	}
	// what the program did to the terminal went with it
	t.Run("InterruptedWithoutEcho", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("sh -c 'stty -echo; read -r x'"), sandbox.Secret)
		exited(t, sh.interrupt(), 130)
		waiting(t, sh.exec(ask), sandbox.Line)
		same(t, "ann\nhello ann\n", sh.input("ann\n").Output)
		sh.lives()
	})
}

// unfinished: what a session says when it is busy, and when it is idle.
func unfinished(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Busy", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(ask), sandbox.Line)
		sh.fails(sandbox.ErrBusy, "Execute", sh.executes("echo other"))
		res := sh.input("ann\n")
		exited(t, res, 0)
		same(t, "ann\nhello ann\n", res.Output) // nothing of the other
		m := b.marker(t)
		running(t, sh.exec("sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		sh.fails(sandbox.ErrBusy, "Execute", sh.executes("echo other"))
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
		sh.lives()
	})
	t.Run("Idle", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		idle := func() {
			sh.fails(sandbox.ErrIdle, "Input", sh.inputs("echo typed\n"))
			sh.fails(sandbox.ErrIdle, "Wait", sh.waits())
			sh.fails(sandbox.ErrIdle, "Interrupt", sh.interrupts())
		}
		idle()
		sh.lives()
		idle()
		sh.exec("exit 3")
		idle()
		sh.usable()
	})
	// the end of a command that nobody waited for is told to the next caller
	t.Run("EndedUnseen", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		gone := func() {
			b.script(t, `cd "$1" && : > go; until [ -e gone ]; do sleep 0.02; done; rm go gone`,
				sh.dir)
			b.eventually(t, func() bool {
				return errors.Is(sh.Type(t.Context(), ""), sandbox.ErrIdle)
			}, "the command's end")
		}
		const command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; : > gone; " +
			"(exit 6)"
		begun := sandbox.Until(regexp.MustCompile("one\n"))
		res := sh.exec(command, begun)
		running(t, res)
		same(t, "one\n", res.Output)
		gone()
		res = sh.wait()
		exited(t, res, 6)
		same(t, "two\n", res.Output)
		sh.fails(sandbox.ErrIdle, "Wait", sh.waits())
		running(t, sh.exec(command, begun))
		gone()
		res = sh.interrupt()
		exited(t, res, 6)
		same(t, "two\n", res.Output)
		running(t, sh.exec(command, begun))
		gone()
		sh.lives() // or to nobody
		sh.fails(sandbox.ErrIdle, "Wait", sh.waits())
	})
	// of many at the same time, each runs whole or gets ErrBusy
	t.Run("ExecuteAtOnce", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		type answer struct {
			res *sandbox.Result
			err error
		}
		answers := make(chan answer)
		const n = 20
		for i := range n {
			go func() {
				res, err := attempt("Execute", sh.executes(fmt.Sprintf("echo %d; sleep 0.05", i)))
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
		sh.lives()
	})
	t.Run("InterruptFromAnotherGoroutine", func(t *testing.T) { // the stop button
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		done := make(chan error)
		go func() {
			_, err := attempt("Execute", sh.executes("echo started; sleep "+string(m)))
			done <- err
		}()
		b.alive(t, m, 1)
		res, err := within(b, t, "Interrupt", sh.interrupts())
		require.NoError(t, err)
		exited(t, res, 130)
		require.NoError(t, <-done, "the Execute that was interrupted")
		b.gone(t, m)
		sh.lives()
	})
}
