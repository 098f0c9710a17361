package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// output: what a command printed, no byte more or less, as a person would read it.
func (s *suite) output(t *testing.T) {
	b := s.box(t)
	b.scripts(t, "09_Exact", []script{
		{"LeadingSpaces", `printf '   a\n\n  b\n'`, "   a\n\n  b\n", 0, ""},
		{"LeadingNewlines", `printf '\n\na\n'`, "\n\na\n", 0, ""},
		{"TrailingBlankLines", `printf 'a\n\n\n'`, "a\n\n\n", 0, ""},
		{"TrailingSpaces", `printf 'a   \n   \n'`, "a   \n   \n", 0, ""},
		{"NoNewlineAtTheEnd", `printf a`, "a", 0, ""},
		{"NoNewlineAndStatus", `printf a; false`, "a", 1, ""},
		{"OnlyANewline", `echo`, "\n", 0, ""},
		{"OnlyNewlines", `printf '\n\n\n'`, "\n\n\n", 0, ""},
		{"OnlySpaces", `printf '  '`, "  ", 0, ""},
		{"Tabs", `printf '\ta\tb\n'`, "\ta\tb\n", 0, ""},
		{"Nothing", `printf ''`, "", 0, ""},
		{"WiderThanTheTerminal", "printf '%s\\n' " + strings.Repeat("0123456789", 30),
			strings.Repeat("0123456789", 30) + "\n", 0, ""},
		{"AsWideAsTheTerminal", "printf '%s\\n%s\\n' " + strings.Repeat("x", 80) + " y",
			strings.Repeat("x", 80) + "\ny\n", 0, ""},
		{"HigherThanTheTerminal", "seq 1 100", lines(1, 100), 0, ""},
	})
	t.Run("10_Lookalikes", func(t *testing.T) { lookalikes(t, b) })
	t.Run("11_Bytes", func(t *testing.T) { bytesOfAllKinds(t, b) })
	b.scripts(t, "12_Controls", controls())
	t.Run("12_Queries", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t) // a terminal's answer would be typed into the next command
		same(t, "\n",
			sh.output(`printf '\033[6n\033[c\033[>c\033[5n\033]11;?\007\033P+q544e\033\\\n'`))
		res := sh.exec("read -r answer", sandbox.Yield(300*time.Millisecond))
		same(t, "", res.Output)
		require.NotEqual(t, sandbox.Exited, res.State, "read has been answered by nobody: %s",
			show(res))
		sh.interrupt()
		sh.lives()
	})
	t.Run("12_Tee", func(t *testing.T) { tee(t, b) })
	t.Run("12_Writers", func(t *testing.T) { blockedTees(t, b) })
	t.Run("12_JobWriters", func(t *testing.T) { jobWriters(t, b) })
	t.Run("12_Panics", func(t *testing.T) { panics(t, b) })
	t.Run("12_Follow", func(t *testing.T) { follow(t, b) })
	t.Run("13_Large", func(t *testing.T) { large(t, b) })
	t.Run("13_MaxOutput", func(t *testing.T) { maxOutput(t, b) })
	b.scripts(t, "14_Order", []script{
		{"StdoutAndStderr",
			`i=0; while [ "$i" -lt 200 ]; do i=$((i + 1)); echo "$i"; echo "e$i" >&2; done`,
			repeat("%[1]d\ne%[1]d\n", 200), 0, ""},
		{"OfPrograms", `for i in 1 2 3; do sh -c 'echo "o$1"; echo "e$1" >&2' sh "$i"; done`,
			repeat("o%[1]d\ne%[1]d\n", 3), 0, ""},
		{"OfTheShellItself", "echo a\nnosuchcommand 2>/dev/null\necho b", "a\nb\n", 0, ""},
	})
	t.Run("14_LastOutput", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		for i := range s.count(1000) {
			res := sh.exec(fmt.Sprintf(`sh -c 'printf "%%s" "last words %d"; exit 3'`, i))
			exited(t, res, 3)
			same(t, fmt.Sprintf("last words %d", i), res.Output)
		}
		want := strings.Repeat("x", 70_000)
		for range 20 {
			res := sh.exec(`sh -c 'head -c 70000 /dev/zero | tr "\0" x; kill -9 $$'`)
			exited(t, res, 137)
			// the shell may add "Killed"
			require.True(t, strings.HasPrefix(res.Output, want), "%s", show(res))
		}
		sh.lives()
	})
}

// lookalikes: output that resembles what an engine might look for.
func lookalikes(t *testing.T, b *box) {
	t.Parallel()
	b.scripts(t, "Printed", []script{
		{"TheCommand", "printf 'cat self\\n' > self\ncat self", "cat self\n", 0, ""},
		{"TheCommandTwice", "echo echo", "echo\n", 0, ""},
		{"Prompts", `printf 'user@host:~$ \n# \n> \n$ '`, "user@host:~$ \n# \n> \n$ ", 0, ""},
		{"OldEndMarker", `printf '\033]133;D;0;1;/;00000000\007after\n'`, "after\n", 0, ""},
		{"OldStartMarker", `printf 'before\n\033]133;C\007after\n'`, "before\nafter\n", 0, ""},
		{"ShellIntegration",
			`printf '\033]133;A\007\033]133;B\007\033]7;file:///tmp\007\033]633;E;x\007\033]1337;x=y\007a\n'`, "a\n", 0, ""},
		{"HalfAMarker", `printf 'a\n\033]133;D;0'`, "a\n", 0, ""},
		{"HalfAStartMarker", `printf 'a\n\033]133;'`, "a\n", 0, ""},
		{"HalfAnEscape", `printf 'a\033'`, "a", 0, ""},
		{"HalfAControlSequence", `printf 'a\033['`, "a", 0, ""},
		{"HalfADeviceControl", `printf 'a\033P1$r'`, "a", 0, ""},
		{"ManyHalves", `printf 'a\033]133;\033]133;D\033[\033]133;D;1;\033\033'`, "a", 0, ""},
	})
	for _, c := range []named{
		{"PS1", `printf '%s\n' "$PS1"`},
		{"Env", "export PS1; env"},
		{"Set", "set"},
		{"Trace", `set -x; : "$PS1"; set +x`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			out := sh.output(c.command + "\necho end")
			require.Truef(t, strings.HasSuffix(out, "end\n"), "output is %s", brief(out))
			sh.lives()
		})
	}
	// the raw bytes of an earlier command, markers and all if they hold any
	t.Run("Replay", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		var raw bytes.Buffer
		exited(t, sh.exec("echo first; false", sandbox.Tee(&raw)), 1)
		out := sh.output("printf '%s' " + quote(raw.String()) + "; echo end")
		same(t, "first\nend\n", out)
		sh.lives()
	})
	t.Run("XTrace", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		require.Contains(t, sh.output("set -x; echo a; set +x"), "+ echo a\na\n")
		sh.lives()
		sh.exec("set -x")
		for range 3 { // and nothing of the engine's own
			out := sh.output("echo a")
			require.Contains(t, out, "+ echo a\na\n")
			require.Less(t, len(out), 200, "output is %s", brief(out))
		}
		sh.exec("set +x")
		sh.lives()
	})
	t.Run("Verbose", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.exec("set -v")
		require.Contains(t, sh.output("echo a"), "a\n")
		sh.exec("set +v")
		sh.lives()
	})
}

func bytesOfAllKinds(t *testing.T, b *box) {
	t.Parallel()
	b.scripts(t, "Printed", []script{
		{"NotUTF8", `printf '\377\376a\300\n'`, "\ufffda\ufffd\n", 0, ""},
		{"Latin1", `printf 'caf\351\n'`, "caf\ufffd\n", 0, ""},
		{"RuneInTwoReads", `printf '\303'; sleep 0.1; printf '\251\n'`, "é\n", 0, ""},
		{"RuneInFourReads",
			`for c in '\360' '\237' '\216' '\211'; do printf "$c"; sleep 0.05; done`, "🎉", 0, ""},
		{"HalfARuneAtTheEnd", `printf 'a\342\202'`, "a\ufffd", 0, ""},
		{"C1ControlsInUTF8", `printf 'a\302\2331mb\302\235c\302\205\n'`, "a1mbc\n", 0, ""},
		{"Directions", `printf 'a\342\200\256b\342\201\246c\n'`, "abc\n", 0, ""},
		{"NUL", `printf 'a\000b\000\n'`, "ab\n", 0, ""},
		{"Bell", `printf 'a\007b\n'`, "ab\n", 0, ""},
		{"OtherControls", `printf 'a\001\002\005\006\016\017\021\023\024\032\177b\n'`, "ab\n", 0,
			""},
		{"ManyRunes", `yes 日本 | head -n 30000`, strings.Repeat("日本\n", 30000), 0, ""},
	})
	// in UTF-8, 0x80 to 0x9f are parts of runes: ě is C4 9B, and 9B is CSI elsewhere
	t.Run("C1Controls", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		same(t, "ěščřž 1;2m\n", sh.output("printf '%s\\n' 'ěščřž 1;2m'"))
		sh.lives()
	})
	t.Run("RandomToTee", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		var raw bytes.Buffer
		sh.output("{ head -c 1000000 /dev/urandom | LC_ALL=C tr -d '\\r'; printf " +
			"'\\033[c\\033[6n'; } > random; stty -echo")
		// a terminal answers such queries, which are in a million random bytes now and then
		sh.output("cat random", sandbox.Tee(&raw))
		sh.output("stty echo")
		same(t, b.script(t, `cat "$1"`, sh.dir+"/random"), unix(raw.Bytes()))
		sh.lives()
	})
	t.Run("Random", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		sh.output(fmt.Sprintf("head -c %d /dev/urandom", b.suite.count(10_000_000)))
		sh.lives()
	})
}

func controls() []script {
	return []script{
		{"Colours", `printf '\033[1;31mred\033[0m \033[38;5;208morange\033[m \033[48;2;1;2;3mtrue\033[0m\n'`, "red orange true\n", 0, ""},
		{"ColoursWithColons", `printf '\033[4:3mcurly\033[0m\n'`, "curly\n", 0, ""},
		{"Title", `printf '\033]0;title\007a\033]2;title\033\\b\n'`, "ab\n", 0, ""},
		{"StringThatIsNone", `printf 'a \033P b\n'; echo c`, "a \nc\n", 0, ""},
		{"Hyperlink", `printf '\033]8;;http://example.com\033\\link\033]8;;\033\\\n'`, "link\n", 0,
			""},
		{"Modes", `printf '\033[?25l\033[?2004h\033(B\033=\033>a\033[?25h\n'`, "a\n", 0, ""},
		{"Progress", `printf '10%%\r50%%\r100%%\n'`, "100%\n", 0, ""},
		{"ProgressWithPauses",
			`for i in 10 50 100; do printf '\r%s%%' "$i"; sleep 0.05; done; echo`, "100%\n", 0, ""},
		{"ProgressWithoutEnd", `printf '\r1%%\r2%%\r3%%'`, "3%", 0, ""},
		{"ProgressErased", `printf 'downloading\r\033[Kdone\n'`, "done\n", 0, ""},
		{"ProgressErasedBefore", `printf 'downloading\033[2K\rdone\n'`, "done\n", 0, ""},
		{"ProgressGone", `printf 'working\r\033[K'`, "", 0, ""},
		{"OverwrittenInPart", `printf 'abcdef\rxy\n'`, "xycdef\n", 0, ""},
		{"ManySteps",
			`i=0; while [ "$i" -lt 5000 ]; do i=$((i + 1)); printf '\rstep %s' "$i"; done; echo`,
			"step 5000\n", 0, ""},
		{"CarriageReturnNewline", `printf 'a\r\nb\r\n'`, "a\nb\n", 0, ""},
		{"CarriageReturnTwice", `printf 'a\r\r\nb\n'`, "a\nb\n", 0, ""},
		{"CarriageReturnAtTheEnd", `printf 'abc\r'`, "abc", 0, ""},
		{"Backspace", `printf 'abc\b\bX\n'`, "aXc\n", 0, ""},
		{"BackspaceErases", `printf 'abc\b \b\n'`, "ab \n", 0, ""},
		{"Spinner", `printf '|\b/\b-\b'; printf 'ok\n'`, "ok\n", 0, ""},
		{"CursorLeft", `printf 'abc\033[2DX\n'`, "aXc\n", 0, ""},
		{"CursorToColumn", `printf 'abcdef\033[3GX\n'`, "abXdef\n", 0, ""},
		{"EraseToTheEnd", `printf 'abcdef\033[4D\033[K\n'`, "ab\n", 0, ""},
		{"RunesOverwritten", `printf 'áéí\rxy\n'`, "xyí\n", 0, ""},
		{"AlternateScreen", `printf 'before\n\033[?1049h\033[2J\033[HINSIDE\n\033[?1049lafter\n'`,
			"before\nafter\n", 0, ""},
		{"AlternateScreenLeftOn", `printf 'a\n\033[?1049h\033[Hdrawn\033[3;1H'; echo b`, "a\nb\n",
			0, ""},
		{"Bold", `printf 'b\bbo\bol\bld\bd\n'`, "bold\n", 0, ""},
	}
}

// A watcher is a Tee that calls seen once, when it has got text.
type watcher struct {
	text string
	seen func()
	mu   sync.Mutex
	buf  bytes.Buffer
	done bool
}

func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.text) {
		w.done = true
		w.seen()
	}
	return len(p), nil
}

type failingWriter struct{ calls int }

func (w *failingWriter) Write([]byte) (int, error) { w.calls++; return 0, errors.New("disk full") }

func tee(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Raw", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		var raw bytes.Buffer
		same(t, "red\n", sh.output(`printf '\033[31mred\033[0m\n'`, sandbox.Tee(&raw)))
		same(t, "\x1b[31mred\x1b[0m\n", unix(raw.Bytes()))
	})
	t.Run("AllOfALot", func(t *testing.T) { // more than Output keeps
		t.Parallel()
		sh := b.open(t)
		var raw bytes.Buffer
		res := sh.exec("seq 1 50000", sandbox.Tee(&raw), sandbox.MaxOutput(1000))
		exited(t, res, 0)
		same(t, lines(1, 50000), unix(raw.Bytes()))
	})
	t.Run("AsItComes", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		seen := make(chan struct{})
		go func() {
			<-seen
			b.sh(t, `: > "$1"`, sh.dir+"/go")
		}()
		w := &watcher{text: "one\n", seen: func() { close(seen) }}
		res := sh.exec("echo one; until [ -e go ]; do sleep 0.02; done; echo two", sandbox.Tee(w),
			sandbox.Yield(grace))
		if !w.done {
			close(seen)
		}
		exited(t, res, 0)
		same(t, "one\ntwo\n", res.Output)
	})
	t.Run("OfEveryCall", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		var first, second bytes.Buffer
		waiting(t, sh.exec("printf 'name? '; read -r n; echo hello $n", sandbox.Tee(&first)),
			sandbox.Line)
		same(t, "name? ", first.String())
		exited(t, sh.input("ann\n", sandbox.Tee(&second)), 0)
		same(t, "ann\nhello ann\n", unix(second.Bytes()))
		same(t, "name? ", first.String())
	})
	t.Run("Error", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		w := &failingWriter{}
		same(t, lines(1, 10000), sh.output("seq 1 5000; sleep 0.1; seq 5001 10000", sandbox.Tee(w)))
		require.Equal(t, 1, w.calls, "writes after the first error")
		sh.lives()
	})
}

func large(t *testing.T, b *box) {
	t.Parallel()
	n := b.suite.count(20_000_000)
	t.Run("OneLine", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		out := sh.output(fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo`, n),
			sandbox.MaxOutput(2*n))
		same(t, strings.Repeat("x", n)+"\n", out)
		sh.lives()
	})
	t.Run("OneLineWithoutEnd", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec(fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x`, n))
		exited(t, res, 0)
		cut(t, res, strings.Repeat("x", n), sandbox.DefaultMaxOutput)
		sh.lives()
	})
	t.Run("ManyLines", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		same(t, lines(1, 100_000), sh.output("seq 1 100000"))
		sh.lives()
	})
	t.Run("ManyEmptyLines", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		same(t, strings.Repeat("\n", 200_000), sh.output("yes '' | head -n 200000"))
		sh.lives()
	})
}

// cut checks that res holds head and tail of whole, which was larger than most bytes, and counts
// what is between.
func cut(t testing.TB, res *sandbox.Result, whole string, most int) {
	t.Helper()
	const leeway = 8 // not to cut a rune or a line end
	require.LessOrEqualf(t, len(res.Output), most+leeway, "bytes of Output for MaxOutput(%d)", most)
	require.EqualValuesf(t, len(whole), int64(len(res.Output))+res.Omitted,
		"bytes kept and omitted: %s", show(res))
	half := max(0, len(res.Output)/2-leeway)
	same(t, whole[:half], res.Output[:half])
	same(t, whole[len(whole)-half:], res.Output[len(res.Output)-half:])
	require.GreaterOrEqual(t, len(res.Output), most-2*leeway, "bytes of Output for MaxOutput(%d)",
		most)
}

func maxOutput(t *testing.T, b *box) {
	t.Parallel()
	sh := b.open(t)
	whole := lines(1, 100_000)
	for _, most := range []int{100, 1000, 4096, 100_000} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			res := sh.with(t).exec("seq 1 100000", sandbox.MaxOutput(most))
			exited(t, res, 0)
			cut(t, res, whole, most)
		})
	}
	t.Run("Exactly", func(t *testing.T) {
		res := sh.with(t).exec("seq 1 100", sandbox.MaxOutput(len(lines(1, 100))))
		same(t, lines(1, 100), res.Output)
		require.Zero(t, res.Omitted, "Omitted")
	})
	t.Run("Default", func(t *testing.T) { // for zero and less, too
		res := sh.with(t).exec("seq 1 100", sandbox.MaxOutput(0))
		same(t, lines(1, 100), res.Output)
		require.Zero(t, res.Omitted, "Omitted")
	})
	t.Run("HoldsForOneCall", func(t *testing.T) {
		sh := sh.with(t)
		require.NotZero(t, sh.exec("seq 1 1000", sandbox.MaxOutput(100)).Omitted, "Omitted")
		res := sh.exec("seq 1 1000")
		same(t, lines(1, 1000), res.Output)
		require.Zero(t, res.Omitted, "Omitted")
	})
	t.Run("EachResultCountsItsOwn", func(t *testing.T) {
		sh := sh.with(t)
		res := sh.exec("seq 1 1000; read -r x; seq 1 10", sandbox.MaxOutput(100))
		waiting(t, res, sandbox.Line)
		require.NotZero(t, res.Omitted, "Omitted")
		res = sh.input("\n")
		exited(t, res, 0)
		same(t, "\n"+lines(1, 10), res.Output)
		require.Zero(t, res.Omitted, "Omitted")
	})
	sh.lives()
}
