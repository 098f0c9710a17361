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

func inputs(t *testing.T, b *box) {
	t.Parallel()
	t.Run("100KB", func(t *testing.T) { // in lines: a terminal cuts one at 4,096 bytes
		t.Parallel()
		sh := b.open(t)
		want := lines(1, 20000)
		waiting(t, sh.exec("cat > f"), sandbox.Line)
		waiting(t, sh.input(want), sandbox.Line)
		exited(t, sh.input("\x04"), 0)
		same(t, want, b.script(t, `cat "$1"`, sh.dir+"/f"))
		sh.lives()
	})
	// echo, input and output at once: nobody may wait for another
	t.Run("100KBToAProgramThatPrints", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		want := lines(1, 20000)
		waiting(t, sh.exec("cat"), sandbox.Line)
		res := sh.input(want)
		waiting(t, res, sandbox.Line)
		if b.suite.lossyEcho {
			require.GreaterOrEqual(t, len(res.Output), len(want))
		} else {
			require.Len(t, res.Output, 2*len(want))
		}
		exited(t, sh.input("\x04"), 0)
		sh.lives()
	})
	t.Run("100KBToAProgramThatDoesNotRead", func(t *testing.T) {
		t.Parallel()
		// What a terminal that is full holds before the interrupt key, the shell reads when it is
		// back, as it would a person's typing. busybox ash takes half a minute for it.
		b.need(t, "bash: a fast prompt")
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		b.alive(t, m, 1)
		res, err := within(b, t, "Input", sh.inputs(strings.Repeat(": > stray\n", 10000),
			sandbox.Yield(500*time.Millisecond)))
		if err == nil {
			running(t, res)
		}
		sh.interrupt()
		b.gone(t, m)
		sh.lives()
	})
	t.Run("AllBytesRaw", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		var all strings.Builder
		for i := range 256 {
			all.WriteByte(byte(i))
		}
		waiting(t, sh.exec("stty raw -echo; head -c 2560 > f; stty sane"), sandbox.Keys)
		exited(t, sh.input(strings.Repeat(all.String(), 10)), 0)
		same(t, strings.Repeat(all.String(), 10), b.script(t, `cat "$1"`, sh.dir+"/f"))
		sh.lives()
	})
	t.Run("100KBRaw", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		want := strings.Repeat("0123456789abcde\n", 6250)
		waiting(t, sh.exec("stty raw -echo; head -c 100000 > f; stty sane"), sandbox.Keys)
		exited(t, sh.input(want), 0)
		same(t, want, b.script(t, `cat "$1"`, sh.dir+"/f"))
		sh.lives()
	})
	t.Run("BytesInALine", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("head -n 1 > f"), sandbox.Line)
		exited(t, sh.input("caf\xe9 \xff日本 🎉\t$HOME 'q\"\n"), 0)
		same(t, "caf\xe9 \xff日本 🎉\t$HOME 'q\"\n", b.script(t, `cat "$1"`, sh.dir+"/f"))
		sh.lives()
	})
	t.Run("EndOfInput", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("cat"), sandbox.Line)
		res := sh.input("\x04")
		exited(t, res, 0)
		same(t, "", res.Output)
		waiting(t, sh.exec("cat"), sandbox.Line)
		res = sh.input("a\n\x04")
		exited(t, res, 0)
		same(t, "a\na\n", res.Output)
		waiting(t, sh.exec("wc -c"), sandbox.Line)
		res = sh.input("ab\x04\x04") // the first only ends the half line
		exited(t, res, 0)
		require.Contains(t, res.Output, "2\n")
		sh.lives()
	})
	t.Run("Editing", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec(ask), sandbox.Line)
		require.Contains(t, sh.input("wrong\x15annx\x7f\n").Output, "hello ann\n")
		sh.lives()
	})
	t.Run("InterruptKey", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("cat"), sandbox.Line)
		exited(t, sh.input("\x03"), 130)
		sh.lives()
		m := b.marker(t)
		running(t, sh.exec("sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		b.alive(t, m, 1)
		exited(t, sh.input("\x03"), 130)
		b.gone(t, m)
		sh.lives()
	})
	t.Run("QuitKey", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("ulimit -c 0; sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		b.alive(t, m, 1)
		exited(t, sh.input("\x1c"), 131)
		b.gone(t, m)
		sh.lives()
	})
	t.Run("StopKey", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		running(t, sh.exec("sleep "+string(m), sandbox.Yield(50*time.Millisecond)))
		b.alive(t, m, 1)
		exited(t, sh.input("\x1a"), 148)
		sh.lives()
		running(t, sh.exec("fg", sandbox.Yield(200*time.Millisecond)))
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
		sh.lives()
	})
	t.Run("TypedAhead", func(t *testing.T) { // to a program that reads later
		t.Parallel()
		sh := b.open(t)
		running(t, sh.exec("sleep 0.5; read -r x; echo \"got $x\"",
			sandbox.Yield(100*time.Millisecond)))
		res := sh.input("early\n")
		exited(t, res, 0)
		require.True(t, strings.HasSuffix(res.Output, "got early\n"), show(res))
		sh.lives()
	})
	t.Run("LeftUnread", func(t *testing.T) { // must not be taken for a part of the next command
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("read -r x"), sandbox.Line)
		exited(t, sh.input("one\n: two\n\n: three\n"))
		for range 5 {
			sh.lives()
		}
	})
}

func until(t *testing.T, b *box) {
	t.Parallel()
	re := regexp.MustCompile
	t.Run("AcrossTwoReads", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("printf 'a par'; sleep 0.2; printf 'tial line\\n'; sleep 0.2; echo end",
			sandbox.Until(re("partial")))
		running(t, res)
		require.Equal(t, "partial", res.Matched)
		same(t, "a partial", res.Output)
		res = sh.wait()
		exited(t, res, 0)
		same(t, " line\nend\n", res.Output)
		sh.lives()
	})
	t.Run("InTheMiddleOfWhatCame", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("echo one two three; (exit 4)", sandbox.Until(re("t.o")))
		running(t, res)
		same(t, "one two", res.Output)
		res = sh.wait(sandbox.Until(re("three")))
		running(t, res)
		same(t, " three", res.Output)
		res = sh.wait()
		exited(t, res, 4)
		same(t, "\n", res.Output)
		sh.lives()
	})
	t.Run("Cleaned", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec(`printf 'pa\033[31mrt\033[0mial\r\nrest\n'`, sandbox.Until(re(`partial\n`)))
		running(t, res)
		same(t, "partial\n", res.Output)
		res = sh.wait()
		exited(t, res, 0)
		same(t, "rest\n", res.Output)
		sh.lives()
	})
	t.Run("Never", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("echo a", sandbox.Until(re("nothing")))
		exited(t, res, 0)
		require.Empty(t, res.Matched)
		same(t, "a\n", res.Output)
		waiting(t, sh.exec(ask, sandbox.Until(re("nothing"))), sandbox.Line)
		exited(t, sh.input("ann\n"), 0)
		sh.lives()
	})
	t.Run("Anchors", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("printf 'xready\\nready\\nend\\n'", sandbox.Until(re(`(?m)^ready$`)))
		running(t, res)
		same(t, "xready\nready", res.Output)
		same(t, "\nend\n", sh.wait().Output)
		sh.lives()
	})
	t.Run("OfInput", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("cat"), sandbox.Line)
		res := sh.input("one\n", sandbox.Until(re("one\none\n")))
		require.Equal(t, "one\none\n", res.Matched, show(res))
		waiting(t, sh.wait(), sandbox.Line)
		exited(t, sh.input("\x04"), 0)
		sh.lives()
	})
	t.Run("ALateMatchInALot", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("seq 1 200000", sandbox.Until(re(`\n199999\n`)), sandbox.MaxOutput(1000))
		running(t, res)
		require.True(t, strings.HasSuffix(res.Output, "\n199999\n"), show(res))
		same(t, "200000\n", sh.wait().Output)
		sh.lives()
	})
	t.Run("ServerReady", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		res := sh.exec("echo starting; sleep 0.3; echo listening on 8080; sleep "+string(m),
			sandbox.Until(re(`listening on (\d+)`)))
		running(t, res)
		require.Equal(t, "listening on 8080", res.Matched)
		// bash 5.2, left to itself, dies now and then of a ^C before it has forked: see timeouts
		b.alive(t, m, 1)
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
		sh.lives()
	})
	t.Run("BeforeTimeout", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		res := sh.timeout(500*time.Millisecond, "echo a; sleep "+string(m),
			sandbox.Until(re("nothing")))
		exited(t, res, 130)
		require.Empty(t, res.Matched)
		b.gone(t, m)
		sh.lives()
	})
}

// notWaiting: these work or sleep; none reads the terminal.
func notWaiting(t *testing.T, b *box) {
	t.Parallel()
	type working struct{ name, command, needs string }
	cases := []working{
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
		// As apt-get has helpers that are another user (only where this one is root), of which
		// /proc tells little.
		{"HelperOfAnotherUser",
			`sh -c 'setpriv --reuid 65534 sleep {n} & printf "Reading ... "; while :; do :; done'`,
			"setpriv"},
		{"SelectWithHelper", `sh -c 'setpriv --reuid 65534 sleep {n} & exec python3 -c "
import os, select
print(\"0% [Connecting]\", end=\"\", flush=True)
r, w = os.pipe()
select.select([r], [], [])"'`, "python3"},
		{"PythonThread", "python3 -c 'import threading; threading.Event().wait()'", "python3"},
	}
	// of some ten looks; Full: longer than what is only guessed has to wait
	watch := time.Duration(b.suite.few(250, 1200)) * time.Millisecond
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b.need(t, c.needs)
			sh := b.open(t)
			m := b.marker(t)
			running(t, sh.exec(strings.ReplaceAll(c.command, "{n}", string(m)),
				sandbox.Yield(watch)))
			running(t, sh.wait(sandbox.Yield(watch/2)))
			interrupted := sh.interrupt()
			next := sh.exec("kill -9 $! 2>/dev/null; wait") // what "&" started is the user's to end
			b.gone(t, m)
			// What the key ends may end while the shell is at its prompt: a read without line
			// editor in busybox ash takes that SIGCHLD for the end of its input.
			restarted := interrupted.Restarted || next.Restarted
			// bash 5.2 and busybox ash, left to themselves: see timeouts
			if restarted && (c.name == "LoopOfSleeps" || b.ash && c.name == "BusyLoop") {
				sh.usable()
				return
			}
			require.False(t, restarted, "the shell has been restarted")
			sh.lives()
		})
	}
}

// notYetWaiting: between a prompt and the read, and between an answer and the next read, a program
// works.
func notYetWaiting(t *testing.T, b *box) {
	t.Parallel()
	t.Run("SleepsAfterThePrompt", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec(`printf 'name? '; sleep 1; read -r n; echo "hello $n"`,
			sandbox.Until(regexp.MustCompile(`\? $`)))
		running(t, res)
		same(t, "name? ", res.Output)
		res = sh.wait()
		waiting(t, res, sandbox.Line)
		require.GreaterOrEqual(t, res.Duration, 900*time.Millisecond)
		exited(t, sh.input("ann\n"), 0)
		sh.lives()
	})
	t.Run("ComputesAfterThePrompt", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("printf 'name? '; until [ -e go ]; do :; done; read -r n; echo \"hello $n\"",
			sandbox.Yield(250*time.Millisecond))
		running(t, res)
		b.script(t, `: > "$1"`, sh.dir+"/go")
		waiting(t, sh.wait(), sandbox.Line)
		exited(t, sh.input("ann\n"), 0)
		sh.lives()
	})
	t.Run("WorksAfterTheAnswer", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("read -r a; until [ -e go ]; do sleep 0.02; done; read -r b; echo "+
			"\"$a $b\""), sandbox.Line)
		running(t, sh.input("x\n", sandbox.Yield(250*time.Millisecond)))
		b.script(t, `: > "$1"`, sh.dir+"/go")
		waiting(t, sh.wait(), sandbox.Line)
		require.Contains(t, sh.input("y\n").Output, "x y\n")
		sh.lives()
	})
	// a stale look at the process would answer for the next
	t.Run("ManyPrompts", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
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
		sh.lives()
	})
}
