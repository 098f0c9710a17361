package sandboxtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// output checks Output: what a command has printed, to the byte, as a person would read it.
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
	b.scripts(t, "12_Controls", controls())
	b.test(t, "12_RowsInParts", rowsInParts)
	b.test(t, "12_Queries", func(t *testing.T, sh *shell) {
		// an answer would be typed into the next command
		same(t, "\n",
			sh.output(`printf '\033[6n\033[c\033[>c\033[5n\033]11;?\007\033P+q544e\033\\\n'`))
		res := sh.exec("read -r answer", sandbox.Yield(300*time.Millisecond))
		same(t, "", res.Output)
		require.NotEqualf(t, sandbox.Exited, res.State, "read has got input that nobody has "+
			"typed: %s", show(res))
		sh.interrupt()
	})
	b.test(t, "13_MaxOutput", maxOutput)
	b.sections(t, []section{
		{"10_Lookalikes", lookalikes},
		{"11_Bytes", bytesOfAllKinds},
		{"12_Tee", tee},
		{"12_Writers", blockedTees},
		{"12_JobWriters", jobWriters},
		{"12_Panics", panics},
		{"12_Follow", follow},
		{"13_Large", large},
	})
	b.scripts(t, "14_Order", []script{
		{"StdoutAndStderr",
			`i=0; while [ "$i" -lt 200 ]; do i=$((i + 1)); echo "$i"; echo "e$i" >&2; done`,
			repeat("%[1]d\ne%[1]d\n", 200), 0, ""},
		{"OfPrograms", `for i in 1 2 3; do sh -c 'echo "o$1"; echo "e$1" >&2' sh "$i"; done`,
			repeat("o%[1]d\ne%[1]d\n", 3), 0, ""},
		{"OfTheShellItself", "echo a\nnosuchcommand 2>/dev/null\necho b", "a\nb\n", 0, ""},
	})
	b.test(t, "14_LastOutput", func(t *testing.T, sh *shell) {
		for i := range s.count(1000) {
			res := sh.exec(fmt.Sprintf(`sh -c 'printf "%%s" "last words %d"; exit 3'`, i))
			exitedWith(t, res, 3, fmt.Sprintf("last words %d", i))
		}
		want := strings.Repeat("x", 70_000)
		for range 20 {
			res := sh.exec(`sh -c 'head -c 70000 /dev/zero | tr "\0" x; kill -9 $$'`)
			exited(t, res, 137)
			// the shell may print "Killed" after it
			require.True(t, strings.HasPrefix(res.Output, want), show(res))
		}
	})
}

// lookalikes prints what an implementation might look for.
func lookalikes(t *testing.T, b *box) {
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
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			out := sh.output(c.command + "\necho end")
			require.Truef(t, strings.HasSuffix(out, "end\n"), "output is %s", brief(out))
		})
	}
	// This prints the raw bytes of an earlier command, with all markers in them.
	b.test(t, "Replay", func(t *testing.T, sh *shell) {
		var raw bytes.Buffer
		exited(t, sh.exec("echo first; false", sandbox.Tee(&raw)), 1)
		out := sh.output("printf '%s' " + quote(raw.String()) + "; echo end")
		same(t, "first\nend\n", out)
	})
	b.test(t, "XTrace", func(t *testing.T, sh *shell) {
		require.Contains(t, sh.output("set -x; echo a; set +x"), "+ echo a\na\n")
		sh.lives()
		sh.exec("set -x")
		for range 3 {
			out := sh.output("echo a")
			require.Contains(t, out, "+ echo a\na\n")
			require.Less(t, len(out), 200, "output has the implementation's own commands: %s",
				brief(out))
		}
		sh.exec("set +x")
	})
	b.test(t, "Verbose", func(t *testing.T, sh *shell) {
		sh.exec("set -v")
		require.Contains(t, sh.output("echo a"), "a\n")
		sh.exec("set +v")
	})
}

// bytesOfAllKinds prints bytes that are no text.
func bytesOfAllKinds(t *testing.T, b *box) {
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
	// 0x80 to 0x9F are parts of runes in UTF-8, where ě is C4 9B; by itself, 9B is the control CSI
	b.test(t, "C1Controls", func(t *testing.T, sh *shell) {
		same(t, "ěščřž 1;2m\n", sh.output("printf '%s\\n' 'ěščřž 1;2m'"))
	})
	b.test(t, "RandomToTee", func(t *testing.T, sh *shell) {
		var raw bytes.Buffer
		// The output includes queries that a terminal answers, as random bytes may.
		sh.output("{ head -c 1000000 /dev/urandom | LC_ALL=C tr -d '\\r'; printf " +
			"'\\033[c\\033[6n'; } > random; stty -echo")
		sh.output("cat random", sandbox.Tee(&raw))
		sh.output("stty echo")
		same(t, b.cat(t, sh.dir+"/random"), unix(raw.Bytes()))
	})
	b.test(t, "Random", func(t *testing.T, sh *shell) {
		sh.output(fmt.Sprintf("head -c %d /dev/urandom", b.suite.count(10_000_000)))
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
		{"RowsRewritten", `printf 'a 1\nb 1\n\033[2A\033[Ka 2\n\033[Kb 2\n'`, "a 2\nb 2\n", 0, ""},
		{"RowsErased", `printf 'a\nb\nc\n\033[2A\033[Jdone\n'`, "a\ndone\n", 0, ""},
		{"RowsNumbered", `printf 'log\n\0337\033[24;1H50%%\0338more\n'`, "log\nmore\n50%", 0, ""},
		{"ManyRedraws", redraws(200, 8) + `; echo end`, rows(200, 8) + "end\n", 0, ""},
		{"Cleared", `for i in 1 2 3; do printf '\033[H\033[2J%s\n' "$i"; done`, "3\n", 0, ""},
		{"SizeProbe", `printf 'a\0337\033[r\033[999;999H\0338b\n'`, "ab\n", 0, ""},
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

// redraws returns a script that draws a progress of n rows, that many times.
func redraws(times, n int) string {
	return fmt.Sprintf(`i=0; while [ "$i" -lt %d ]; do [ "$i" = 0 ] || printf '\033[%dA'; `+
		`i=$((i + 1)); for row in %s; do printf '\033[2Krow %%s at %%s\n' "$row" "$i"; done; done`,
		times, n, strings.ReplaceAll(strings.TrimSpace(lines(1, n)), "\n", " "))
}

// rows returns n rows as redraws leaves them.
func rows(at, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "row %d at %d\n", i+1, at)
	}
	return b.String()
}

// rowsInParts takes a Result while a progress display of several rows is half way. What was in that
// Result and is rewritten comes again, whole.
func rowsInParts(t *testing.T, sh *shell) {
	res := sh.exec(redraws(100, 5)+`; echo same; read answer; printf '\033[7A'; `+redraws(200, 5)+
		`; printf '\nanswer %s\n' "$answer"`, sandbox.AtQuestion(sandbox.Return))
	require.Equal(t, sandbox.Waiting, res.State)
	same(t, rows(100, 5)+"same\n", res.Output)
	same(t, rows(200, 5)+"answer ok\n", sh.input("ok\n").Output)
}

// large prints much.
func large(t *testing.T, b *box) {
	n := b.suite.count(20_000_000)
	b.test(t, "OneLine", func(t *testing.T, sh *shell) {
		out := sh.output(fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo`, n),
			sandbox.MaxOutput(2*n))
		same(t, strings.Repeat("x", n)+"\n", out)
	})
	b.test(t, "OneLineWithoutEnd", func(t *testing.T, sh *shell) {
		cut(t, sh.exec(fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x`, n)),
			strings.Repeat("x", n), sandbox.DefaultMaxOutput)
	})
	b.test(t, "ManyLines", func(t *testing.T, sh *shell) {
		same(t, lines(1, 100_000), sh.output("seq 1 100000"))
	})
	b.test(t, "ManyEmptyLines", func(t *testing.T, sh *shell) {
		same(t, strings.Repeat("\n", 200_000), sh.output("yes '' | head -n 200000"))
	})
}

// cut checks that a command has printed whole, that Output is its head and tail, of about most
// bytes, and that Omitted counts the rest.
func cut(t testing.TB, res *sandbox.Result, whole string, most int) {
	t.Helper()
	exited(t, res, 0)
	const leeway = 8 // a rune or a line end is not cut
	require.LessOrEqualf(t, len(res.Output), most+leeway, "bytes of Output for MaxOutput(%d)", most)
	require.EqualValuesf(t, len(whole), int64(len(res.Output))+res.Omitted,
		"bytes kept and omitted: %s", show(res))
	half := max(0, len(res.Output)/2-leeway)
	same(t, whole[:half], res.Output[:half])
	same(t, whole[len(whole)-half:], res.Output[len(res.Output)-half:])
	require.GreaterOrEqual(t, len(res.Output), most-2*leeway, "bytes of Output for MaxOutput(%d)",
		most)
}

// printedWhole checks that Output is whole.
func printedWhole(t testing.TB, res *sandbox.Result, whole string) {
	t.Helper()
	exitedWith(t, res, 0, whole)
	require.Zero(t, res.Omitted, "Omitted")
}

func maxOutput(t *testing.T, sh *shell) {
	whole := lines(1, 100_000)
	for _, most := range []int{100, 1000, 4096, 100_000} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			cut(t, sh.with(t).exec("seq 1 100000", sandbox.MaxOutput(most)), whole, most)
		})
	}
	for name, most := range map[string]int{"Exactly": len(lines(1, 100)), "Default": 0} {
		t.Run(name, func(t *testing.T) {
			printedWhole(t, sh.with(t).exec("seq 1 100", sandbox.MaxOutput(most)), lines(1, 100))
		})
	}
	t.Run("HoldsForOneCall", func(t *testing.T) {
		sh := sh.with(t)
		require.NotZero(t, sh.exec("seq 1 1000", sandbox.MaxOutput(100)).Omitted, "Omitted")
		printedWhole(t, sh.exec("seq 1 1000"), lines(1, 1000))
	})
	t.Run("EachResultCountsItsOwn", func(t *testing.T) {
		sh := sh.with(t)
		res := sh.exec("seq 1 1000; read -r x; seq 1 10", sandbox.MaxOutput(100))
		waiting(t, res, sandbox.Line)
		require.NotZero(t, res.Omitted, "Omitted")
		printedWhole(t, sh.input("\n"), "\n"+lines(1, 10))
	})
}
