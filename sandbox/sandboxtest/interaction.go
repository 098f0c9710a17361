package sandboxtest

import (
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
		waiting(t, sh.exec(`printf 'name [ann]: '; read -r n; echo "hello ${n:-ann}"`), sandbox.Line)
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
	t.Run("ALoopOfThem", func(t *testing.T) { // each answer is read, worked on and the next waited for before Input returns
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
			{"cat", "cat"}, {"head", "head -n 1"}, {"sh", "sh -c 'read -r x; echo \"$x\"'"}, {"InAPipeline", "cat | cat"},
			{"InASubshell", "(read -r x; echo \"$x\")"}, {"Substituted", `x=$(read -r y; echo "$y"); echo "$x"`}, {"TTY", "read -r x </dev/tty; echo \"$x\""},
			{"AfterOthers", "sleep 0.2; seq 1 100; cat"}, {"SilentLoop", `while read -r x; do echo "$x"; break; done`},
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
	t.Run("InterruptedWithoutEcho", func(t *testing.T) { // what the program did to the terminal went with it
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("sh -c 'stty -echo; read -r x'"), sandbox.Secret)
		exited(t, sh.interrupt(), 130)
		waiting(t, sh.exec(ask), sandbox.Line)
		same(t, "ann\nhello ann\n", sh.input("ann\n").Output)
		sh.lives()
	})
}

// questions asks those that real programs ask, and answers so that nothing outside the case's directory changes.
func questions(t *testing.T, b *box) {
	t.Parallel()
	t.Run("rm", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		for _, c := range []struct{ answer, left string }{{"n", "f\n"}, {"y", ""}} {
			waiting(t, sh.exec(": > f; rm -i f"), sandbox.Line)
			exited(t, sh.input(c.answer+"\n"))
			same(t, c.left, sh.output("ls"))
		}
		sh.lives()
	})
	t.Run("Script", func(t *testing.T) { // its process is not called as its shell is
		t.Parallel()
		sh := b.open(t)
		exited(t, sh.exec(`printf '#!/bin/sh\nprintf "name? "\nread -r x\necho "hello $x"\n' > ask; chmod +x ask`))
		waiting(t, sh.exec("./ask"), sandbox.Line)
		res := sh.input("ann\n")
		exited(t, res)
		require.True(t, strings.HasSuffix(res.Output, "hello ann\n"), show(res))
		sh.lives()
	})
	t.Run("apt-get", func(t *testing.T) {
		t.Parallel()
		b.need(t, "apt-get", "dpkg-query")
		if !b.root(t) {
			b.suite.skip(t, "apt-get needs root")
		}
		installed := strings.Fields(b.script(t, `dpkg-query -W -f '${Package} ${db:Status-Status} ${Essential} ${Priority}\n' | grep ' installed no optional$' | sed -n '1s/ .*//p'`))
		if len(installed) == 0 {
			b.suite.skip(t, "no package that apt-get could ask about")
		}
		sh := b.open(t)
		// To remove asks without a network; a dpkg that does nothing makes sure that nothing is. No lock is needed then, nor
		// kept from the same case in another box of this machine.
		res := sh.exec("apt-get -o Dir::Bin::dpkg=/bin/false -o Debug::NoLocking=1 remove " + installed[0])
		if res.State == sandbox.Exited && strings.Contains(res.Output, "lock") {
			b.suite.skip(t, "apt-get is in use: "+res.Output)
		}
		waiting(t, res, sandbox.Line)
		require.True(t, strings.HasSuffix(res.Output, "[Y/n] "), show(res))
		res = sh.input("n\n")
		exited(t, res, 1)
		require.Contains(t, res.Output, "Abort")
		sh.lives()
	})
	t.Run("ssh-keygen", func(t *testing.T) {
		t.Parallel()
		b.need(t, "ssh-keygen")
		sh := b.open(t)
		waiting(t, sh.exec("ssh-keygen -t ed25519 -f key"), sandbox.Secret)
		res := sh.input("open sesame\n")
		waiting(t, res, sandbox.Secret)
		require.NotContains(t, res.Output, "sesame")
		exited(t, sh.input("open sesame\n"), 0)
		exited(t, sh.exec("[ -s key ] && [ -s key.pub ]"), 0)
		waiting(t, sh.exec("ssh-keygen -t ed25519 -f key -N x"), sandbox.Line) // overwrite?
		exited(t, sh.input("n\n"))
		sh.lives()
	})
	t.Run("passwd", func(t *testing.T) { // asked, never answered
		t.Parallel()
		b.need(t, "passwd")
		sh := b.open(t)
		res := sh.exec("passwd")
		if res.State == sandbox.Exited {
			b.suite.skip(t, "passwd asks nothing here: "+strings.TrimSpace(res.Output))
		}
		waiting(t, res, sandbox.Secret)
		exited(t, sh.interrupt())
		sh.lives()
	})
	t.Run("sudo", func(t *testing.T) {
		t.Parallel()
		b.need(t, "sudo")
		if b.root(t) {
			b.suite.skip(t, "sudo does not ask root")
		}
		if user := strings.TrimSpace(b.script(t, "id -un")); user != "user" {
			b.suite.skip(t, "the password of "+user+" is not known: the test image's is user, password sandshell")
		}
		sh := b.open(t)
		res := sh.exec("sudo -k; sudo id -u")
		if res.State == sandbox.Exited {
			b.suite.skip(t, "sudo asks nothing here: "+strings.TrimSpace(res.Output))
		}
		waiting(t, res, sandbox.Secret)
		res = sh.input("wrong\n")
		waiting(t, res, sandbox.Secret)
		res = sh.input("sandshell\n")
		exited(t, res, 0)
		require.True(t, strings.HasSuffix(res.Output, "0\n"), show(res))
		require.NotContains(t, res.Output, "sandshell\n")
		sh.lives()
	})
}

func repls(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []struct{ name, command, needs, question, answer, exit string }{
		{"Python", "python3", "python3", "print(6 * %d)", "%d\n", "exit(3)"},
		{"PythonI", "python3 -i -q -c 'x = 6'", "python3", "print(x * %d)", "%d\n", "exit(3)"},
		{"bc", "bc -q", "bc", "6 * %d", "%d\n", "quit"},
		{"sqlite3", "sqlite3 :memory:", "sqlite3", "select 6 * %d;", "%d\n", ".quit"},
		{"gdb", "gdb -q -nx", "gdb", "output 6 * %d", "%d", "quit"},
		{"sh", "sh", "sh", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"ShInteractive", "sh -i", "sh", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"ShWithThePromptExported", "export PS1; sh -i", "sh", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"ShWithAllExported", "set -a; PS1=$PS1; set +a; sh -i", "sh", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"bash", "bash --norc", "bash", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"BashWithThePromptExported", "export PS1 PROMPT_COMMAND; bash --norc", "bash", "echo $((6 * %d))", "%d\n", "exit 3"},
		{"busybox", "busybox ash", "busybox", "echo $((6 * %d))", "%d\n", "exit 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !b.has(t, c.needs) {
				b.suite.skip(t, "no "+c.needs+" in this box")
			}
			sh := b.open(t)
			for range 2 { // back to the shell, and a REPL again
				kinds := []sandbox.InputKind{sandbox.Line, sandbox.Keys} // with readline or without
				if strings.Contains(c.name, "Exported") && !b.bash {
					kinds = append(kinds, sandbox.Secret) // the prompt of busybox's ash turns off the echo, whoever shows it
				}
				waiting(t, sh.exec(c.command), kinds...)
				for i := range 5 {
					res := sh.input(fmt.Sprintf(c.question, i+1000) + "\n")
					waiting(t, res, kinds...)
					require.Contains(t, res.Output, fmt.Sprintf(c.answer, 6*(i+1000)))
				}
				res := sh.input(c.exit + "\n")
				if strings.Contains(c.exit, "3") {
					exited(t, res, 3)
				} else {
					exited(t, res, 0)
				}
				sh.lives()
			}
		})
	}
	t.Run("PythonKind", func(t *testing.T) {
		t.Parallel()
		b.need(t, "python3")
		kind := sandbox.Keys
		if code, _, _ := b.sh(t, "python3 -c 'import readline'"); code != 0 {
			kind = sandbox.Line
		}
		sh := b.open(t)
		res := sh.exec("python3")
		waiting(t, res, kind)
		require.Truef(t, strings.HasSuffix(res.Output, ">>> "), show(res))
		exited(t, sh.input("\x04"), 0)
		sh.lives()
	})
	t.Run("PythonOfSeveralLines", func(t *testing.T) {
		t.Parallel()
		b.need(t, "python3")
		sh := b.open(t)
		waiting(t, sh.exec("python3"), sandbox.Keys, sandbox.Line)
		res := sh.input("for i in range(3):\n    print('line', i * 7)\n\n")
		waiting(t, res, sandbox.Keys, sandbox.Line)
		if !strings.Contains(res.Output, "line 14\n") { // it read part, and then the rest
			sh.wait(sandbox.Until(regexp.MustCompile("line 14\n")))
		}
		exited(t, sh.interrupt())
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
	t.Run("EndedUnseen", func(t *testing.T) { // the end of a command that nobody waited for is told to who asks next
		t.Parallel()
		sh := b.open(t)
		gone := func() {
			b.script(t, `cd "$1" && : > go; until [ -e gone ]; do sleep 0.02; done; sleep 0.2; rm go gone`, sh.dir)
		}
		const command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; : > gone; (exit 6)"
		res := sh.exec(command, sandbox.Yield(200*time.Millisecond))
		running(t, res)
		same(t, "one\n", res.Output)
		gone()
		res = sh.wait()
		exited(t, res, 6)
		same(t, "two\n", res.Output)
		sh.fails(sandbox.ErrIdle, "Wait", sh.waits())
		running(t, sh.exec(command, sandbox.Yield(200*time.Millisecond)))
		gone()
		res = sh.interrupt()
		exited(t, res, 6)
		same(t, "two\n", res.Output)
		running(t, sh.exec(command, sandbox.Yield(200*time.Millisecond)))
		gone()
		sh.lives() // or to nobody
		sh.fails(sandbox.ErrIdle, "Wait", sh.waits())
	})
	t.Run("ExecuteAtOnce", func(t *testing.T) { // of many at the same time, each runs whole or gets ErrBusy
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
