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

// inputs types to programs.
func inputs(t *testing.T, b *box) {
	longInputs(t, b)
	keys(t, b)
	b.test(t, "BytesInALine", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("head -n 1 > f"), sandbox.Line)
		exited(t, sh.input("caf\xe9 \xff日本 🎉\t$HOME 'q\"\n"), 0)
		same(t, "caf\xe9 \xff日本 🎉\t$HOME 'q\"\n", b.cat(t, sh.dir+"/f"))
	})
	// The program reads later.
	b.test(t, "TypedAhead", func(t *testing.T, sh *shell) {
		running(t, sh.exec("sleep 0.5; read -r x; echo \"got $x\"",
			sandbox.Yield(100*time.Millisecond)))
		res := sh.input("early\n")
		exited(t, res, 0)
		require.True(t, strings.HasSuffix(res.Output, "got early\n"), show(res))
	})
	// The shell does not execute what was left.
	b.test(t, "LeftUnread", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r x"), sandbox.Line)
		exited(t, sh.input("one\n: two\n\n: three\n"))
		times(5, sh.lives)
	})
}

// longInputs types much.
func longInputs(t *testing.T, b *box) {
	// The text has lines, because a terminal cuts a line after 4,096 bytes.
	b.test(t, "100KB", func(t *testing.T, sh *shell) {
		want := lines(1, 20000)
		waiting(t, sh.exec("cat > f"), sandbox.Line)
		waiting(t, sh.input(want), sandbox.Line)
		exited(t, sh.input("\x04"), 0)
		same(t, want, b.cat(t, sh.dir+"/f"))
	})
	// Echo, input and output at once must not block each other.
	b.test(t, "100KBToAProgramThatPrints", func(t *testing.T, sh *shell) {
		want := lines(1, 20000)
		waiting(t, sh.exec("cat"), sandbox.Line)
		res := sh.input(want)
		waiting(t, res, sandbox.Line)
		if b.suite.plain {
			require.GreaterOrEqual(t, len(res.Output), len(want))
		} else {
			require.Len(t, res.Output, 2*len(want))
		}
		exited(t, sh.input("\x04"), 0)
	})
	b.test(t, "100KBToAProgramThatDoesNotRead", func(t *testing.T, sh *shell) {
		// After the interrupt, the shell reads what the full terminal holds. busybox ash takes half
		// a minute for that.
		b.need(t, "bash: a fast prompt")
		m := sh.sleeps()
		res, err := within(b, t, "Input", sh.inputCall(strings.Repeat(": > stray\n", 10000),
			sandbox.Yield(500*time.Millisecond)))
		if err == nil {
			running(t, res)
		}
		sh.interrupt()
		b.gone(t, m)
	})
	b.test(t, "AllBytesRaw", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("stty raw -echo; head -c 2560 > f; stty sane"), sandbox.Keys)
		exited(t, sh.input(strings.Repeat(allBytes, 10)), 0)
		same(t, strings.Repeat(allBytes, 10), b.cat(t, sh.dir+"/f"))
	})
	b.test(t, "100KBRaw", func(t *testing.T, sh *shell) {
		want := strings.Repeat("0123456789abcde\n", 6250)
		waiting(t, sh.exec("stty raw -echo; head -c 100000 > f; stty sane"), sandbox.Keys)
		exited(t, sh.input(want), 0)
		same(t, want, b.cat(t, sh.dir+"/f"))
	})
}

// keys types keys that the terminal handles.
func keys(t *testing.T, b *box) {
	b.test(t, "EndOfInput", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("cat"), sandbox.Line)
		exitedWith(t, sh.input("\x04"), 0, "")
		waiting(t, sh.exec("cat"), sandbox.Line)
		exitedWith(t, sh.input("a\n\x04"), 0, "a\na\n")
		waiting(t, sh.exec("wc -c"), sandbox.Line)
		res := sh.input("ab\x04\x04") // the first only ends the half line
		exited(t, res, 0)
		require.Contains(t, res.Output, "2\n")
	})
	b.test(t, "Editing", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(ask), sandbox.Line)
		require.Contains(t, sh.input("wrong\x15annx\x7f\n").Output, "hello ann\n")
	})
	b.test(t, "InterruptKey", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("cat"), sandbox.Line)
		exited(t, sh.input("\x03"), 130)
		sh.lives()
		m := sh.sleeps()
		exited(t, sh.input("\x03"), 130)
		b.gone(t, m)
	})
	b.test(t, "QuitKey", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		running(t, sh.exec("ulimit -c 0; sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		b.alive(t, m, 1)
		exited(t, sh.input("\x1c"), 131)
		b.gone(t, m)
	})
	b.test(t, "StopKey", func(t *testing.T, sh *shell) {
		m := sh.sleeps()
		exited(t, sh.input("\x1a"), 148)
		sh.lives()
		running(t, sh.exec("fg", sandbox.Yield(200*time.Millisecond)))
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
	})
}

// until returns at a match of Until.
func until(t *testing.T, b *box) {
	re := regexp.MustCompile
	b.test(t, "AcrossTwoReads", func(t *testing.T, sh *shell) {
		res := sh.exec("printf 'a par'; sleep 0.2; printf 'tial line\\n'; sleep 0.2; echo end",
			sandbox.Until(re("partial")))
		running(t, res)
		require.Equal(t, "partial", res.Matched)
		same(t, "a partial", res.Output)
		exitedWith(t, sh.wait(), 0, " line\nend\n")
	})
	b.test(t, "InTheMiddleOfWhatCame", func(t *testing.T, sh *shell) {
		runningWith(t, sh.exec("echo one two three; (exit 4)", sandbox.Until(re("t.o"))), "one two")
		runningWith(t, sh.wait(sandbox.Until(re("three"))), " three")
		exitedWith(t, sh.wait(), 4, "\n")
	})
	b.test(t, "Cleaned", func(t *testing.T, sh *shell) {
		res := sh.exec(`printf 'pa\033[31mrt\033[0mial\r\nrest\n'`, sandbox.Until(re(`partial\n`)))
		runningWith(t, res, "partial\n")
		exitedWith(t, sh.wait(), 0, "rest\n")
	})
	b.test(t, "Never", func(t *testing.T, sh *shell) {
		res := sh.exec("echo a", sandbox.Until(re("nothing")))
		exited(t, res, 0)
		require.Empty(t, res.Matched)
		same(t, "a\n", res.Output)
		waiting(t, sh.exec(ask, sandbox.Until(re("nothing"))), sandbox.Line)
		exited(t, sh.input("ann\n"), 0)
	})
	b.test(t, "Anchors", func(t *testing.T, sh *shell) {
		res := sh.exec("printf 'xready\\nready\\nend\\n'", sandbox.Until(re(`(?m)^ready$`)))
		runningWith(t, res, "xready\nready")
		same(t, "\nend\n", sh.wait().Output)
	})
	b.test(t, "OfInput", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("cat"), sandbox.Line)
		res := sh.input("one\n", sandbox.Until(re("one\none\n")))
		require.Equal(t, "one\none\n", res.Matched, show(res))
		waiting(t, sh.wait(), sandbox.Line)
		exited(t, sh.input("\x04"), 0)
	})
	b.test(t, "ALateMatchInALot", func(t *testing.T, sh *shell) {
		res := sh.exec("seq 1 200000", sandbox.Until(re(`\n199999\n`)), sandbox.MaxOutput(1000))
		running(t, res)
		require.True(t, strings.HasSuffix(res.Output, "\n199999\n"), show(res))
		same(t, "200000\n", sh.wait().Output)
	})
	b.test(t, "ServerReady", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		res := sh.exec("echo starting; sleep 0.3; echo listening on 8080; sleep "+string(m),
			sandbox.Until(re(`listening on (\d+)`)))
		running(t, res)
		require.Equal(t, "listening on 8080", res.Matched)
		// bash 5.2 sometimes dies of a ^C between two forks: see timeouts
		b.alive(t, m, 1)
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
	})
	b.test(t, "BeforeTimeout", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		res := sh.timeout(500*time.Millisecond, "echo a; sleep "+string(m),
			sandbox.Until(re("nothing")))
		exited(t, res, 130)
		require.Empty(t, res.Matched)
		b.gone(t, m)
	})
}

// notWaiting has commands that work or sleep, and do not read the terminal.
func notWaiting(t *testing.T, b *box) {
	// The time allows some ten looks; with Full, more than an implementation needs to guess.
	watch := time.Duration(b.suite.pick(250, 1200)) * time.Millisecond
	for _, c := range []struct{ name, command, needs string }{
		{"Sleep", "sleep {n}", ""},
		{"BusyLoop", "while :; do :; done", ""},
		{"BusyProgram", `sh -c 'while :; do :; done'`, ""},
		{"Pipeline", "sleep {n} | cat", ""},
		{"PipelineTheOtherWay", "cat /dev/null | sleep {n}", ""},
		{"Wait", "sleep {n} & wait", ""},
		{"LoopOfSleeps", "while :; do sleep 0.01; done", ""},
		{"Tail", "tail -f /dev/null", ""},
		{"Fifo", "mkfifo p; cat p", ""},
		{"TerminalOpenButNotRead", "exec 5</dev/tty; sleep {n} </dev/tty", ""},
		{"SilentChild", "sh -c 'sleep {n}; read -r x'", ""},
		{"RawTerminal", "stty raw -echo; sleep {n}; stty sane", ""},
		{"BackgroundReader", "cat & sleep {n}", ""},
		{"Dots", "while :; do printf .; sleep 0.02; done", ""},
		{"PromptLike", "printf 'password: '; sleep {n}", ""},
		{"Discarded", "yes > /dev/null", ""},
		{"PythonSleep", "python3 -c 'import time; time.sleep({n})'", "python3"},
		{"PythonServer", "python3 -m http.server --bind 127.0.0.1 0", "python3"},
		{"PythonSelect", "python3 -c 'import os, select; r, w = os.pipe(); select.select([r], " +
			"[], [])'", "python3"},
		// if the user is root: like apt-get's helpers, of which /proc says little
		{"HelperOfAnotherUser",
			`sh -c 'setpriv --reuid 65534 sleep {n} & printf "Reading ... "; while :; do :; done'`,
			"setpriv"},
		{"SelectWithHelper", `sh -c 'setpriv --reuid 65534 sleep {n} & exec python3 -c "
import os, select
print(\"0% [Connecting]\", end=\"\", flush=True)
r, w = os.pipe()
select.select([r], [], [])"'`, "python3"},
		{"PythonThread", "python3 -c 'import threading; threading.Event().wait()'", "python3"},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			b.need(t, c.needs)
			m := b.marker(t)
			running(t, sh.exec(strings.ReplaceAll(c.command, "{n}", string(m)),
				sandbox.Yield(watch)))
			running(t, sh.wait(sandbox.Yield(watch/2)))
			interrupted := sh.interrupt()
			// Interrupt does not end background jobs
			next := sh.exec("kill -9 $! 2>/dev/null; wait")
			b.gone(t, m)
			restarted := interrupted.Restarted || next.Restarted
			// bash 5.2 and busybox ash sometimes die of a ^C: see timeouts and ashHangs
			if restarted && (c.name == "LoopOfSleeps" || b.ash && c.name == "BusyLoop") {
				sh.mayRestart = true
				return
			}
			// In busybox ash, read without a line editor takes the SIGCHLD of a program that ends
			// after the prompt for the end of its input.
			require.False(t, restarted, "the shell has been restarted")
		})
	}
}

// notYetWaiting has programs that work between a prompt and the read, or between an answer and the
// next read.
func notYetWaiting(t *testing.T, b *box) {
	b.test(t, "SleepsAfterThePrompt", func(t *testing.T, sh *shell) {
		res := sh.exec(`printf 'name? '; sleep 1; read -r n; echo "hello $n"`,
			sandbox.Until(regexp.MustCompile(`\? $`)))
		runningWith(t, res, "name? ")
		res = sh.wait()
		waiting(t, res, sandbox.Line)
		require.GreaterOrEqual(t, res.Duration, 900*time.Millisecond)
		exited(t, sh.input("ann\n"), 0)
	})
	b.test(t, "ComputesAfterThePrompt", func(t *testing.T, sh *shell) {
		res := sh.exec("printf 'name? '; until [ -e go ]; do :; done; read -r n; echo \"hello $n\"",
			sandbox.Yield(250*time.Millisecond))
		running(t, res)
		sh.touch("go")
		waiting(t, sh.wait(), sandbox.Line)
		exited(t, sh.input("ann\n"), 0)
	})
	b.test(t, "WorksAfterTheAnswer", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("read -r a; until [ -e go ]; do sleep 0.02; done; read -r b; echo "+
			"\"$a $b\""), sandbox.Line)
		running(t, sh.input("x\n", sandbox.Yield(250*time.Millisecond)))
		sh.touch("go")
		waiting(t, sh.wait(), sandbox.Line)
		require.Contains(t, sh.input("y\n").Output, "x y\n")
	})
	// An earlier look at the process must not answer for the next question.
	b.test(t, "ManyPrompts", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("i=0; while [ \"$i\" -lt 20 ]; do i=$((i + 1)); printf 'q%s? ' "+
			"\"$i\"; read -r a; sleep 0.03; echo \"a$i=$a\"; done"), sandbox.Line)
		for i := range 20 {
			res := sh.input(fmt.Sprintf("%d\n", i*i))
			require.Truef(t, strings.HasPrefix(res.Output,
				fmt.Sprintf("%d\na%d=%d\n", i*i, i+1, i*i)), "question %d: %s", i+1, show(res))
			if i < 19 {
				waiting(t, res, sandbox.Line)
			} else {
				exited(t, res, 0)
			}
		}
	})
}
