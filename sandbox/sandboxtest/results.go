package sandboxtest

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// callers uses Idle, AtQuestion and Type.
func callers(t *testing.T, b *box) {
	b.test(t, "Idle", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		res := sh.exec("echo one; echo two; sleep "+string(m), sandbox.Idle(500*time.Millisecond))
		runningWith(t, res, "one\ntwo\n")
		require.Equal(t, -1, res.ExitCode)
		runningWith(t, sh.wait(sandbox.Idle(50*time.Millisecond)), "")
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
		exited(t, sh.exec("(exit 4)", sandbox.Idle(grace)), 4)
	})
	// Idle counts from the last output, and not from the call.
	b.test(t, "IdleIsSilence", func(t *testing.T, sh *shell) {
		res := sh.exec("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.2; done; (exit 4)",
			sandbox.Idle(1200*time.Millisecond))
		exitedWith(t, res, 4, lines(1, 8))
	})
	b.test(t, "EndInput", func(t *testing.T, sh *shell) {
		end := sandbox.AtQuestion(sandbox.EndInput)
		exitedWith(t, sh.exec("cat; echo after", end), 0, "after\n")
		exited(t, sh.exec("read -r x", end), 1)
		res := sh.exec("cat; echo first; read -r x; echo \"<$x>\"", end) // once
		waitingWith(t, res, "first\n", sandbox.Line)
		exited(t, sh.input("y\n", end), 0)
	})
	b.test(t, "EndInputOfInput", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("cat"), sandbox.Line)
		exitedWith(t, sh.input("a\n", sandbox.AtQuestion(sandbox.EndInput)), 0, "a\na\n")
	})
	b.test(t, "Fail", func(t *testing.T, sh *shell) {
		fail := sandbox.AtQuestion(sandbox.Fail)
		res := sh.fails(sandbox.ErrQuestion, "Execute",
			sh.executeCall(`printf 'name? '; read -r x; echo "<$x>"`, fail))
		require.NotNil(t, res)
		exited(t, res, 130)
		require.True(t, strings.HasPrefix(res.Output, "name? "), show(res))
		sh.lives()
		exited(t, sh.exec("(exit 4)", fail), 4)
		waiting(t, sh.exec("read -r x; read -r y"), sandbox.Line)
		exited(t, sh.fails(sandbox.ErrQuestion, "Input", sh.inputCall("a\n", fail)), 130)
	})
	b.test(t, "Type", func(t *testing.T, sh *shell) {
		typed := func(text string) error {
			_, err := within(b, t, "Type", noResult(func(ctx context.Context) error {
				return sh.Type(ctx, text)
			}))
			return err
		}
		require.ErrorIs(t, typed("echo typed\n"), sandbox.ErrIdle)
		waiting(t, sh.exec("read -r x; until [ -e go ]; do sleep 0.02; done; echo \"<$x>\""),
			sandbox.Line)
		require.NoError(t, typed("on"))
		require.NoError(t, typed("e\n")) // returns while the command goes on
		sh.touch("go")
		exitedWith(t, sh.wait(), 0, "one\n<one>\n")
		require.ErrorIs(t, typed("echo typed\n"), sandbox.ErrIdle)
	})
}

// resultFields checks fields of Result.
func resultFields(t *testing.T, b *box) {
	omitted(t, b)
	fullScreenField(t, b)
	// ExitCode is -1 until the command has ended.
	b.test(t, "ExitCode", func(t *testing.T, sh *shell) {
		res := sh.exec("read -r x; until [ -e go ]; do sleep 0.02; done; (exit 4)")
		waiting(t, res, sandbox.Line)
		require.Equal(t, -1, res.ExitCode)
		res = sh.input("y\n", sandbox.Yield(50*time.Millisecond))
		running(t, res)
		require.Equal(t, -1, res.ExitCode)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		res, err := within(b, t, "Wait", func(context.Context) (*sandbox.Result, error) {
			return sh.Wait(ctx)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, -1, res.ExitCode)
		sh.touch("go")
		exited(t, sh.wait(), 4)
	})
	// Programs ask for the terminal's size in this way.
	b.test(t, "CursorWhereAsked", func(t *testing.T, sh *shell) {
		same(t, "        24 x 80, 5 7\n", sh.output(`old=$(stty -g); stty raw -echo min 0 time 100
printf '\0337\033[r\033[999;999H\033[6n\0338\033[5;7H\033[6n\033[9;9H' >/dev/tty
answer() { dd bs=1 count=$1 2>/dev/null </dev/tty | tr -dc '0-9;' | tr ';' ' '; }
a=$(answer 8) b=$(answer 6); stty "$old"; echo "${a% *} x ${a#* }, $b"`))
	})
	b.sections(t, []section{{"Incomplete", incomplete}})
	parallel(t, "OfAJob", func(t *testing.T) {
		res := b.start(t, "echo x").ends(0)
		require.Zero(t, res.Omitted, "Omitted")
		same(t, "x\n", res.Output)
	})
}

// omitted checks Omitted and OmittedAt.
func omitted(t *testing.T, b *box) {
	b.test(t, "OmittedAt", func(t *testing.T, sh *shell) {
		all := lines(1, 10_000)
		for _, n := range []int{1, 10, 999, 5000, len(all) - 1} {
			res := sh.exec("seq 1 10000", sandbox.MaxOutput(n))
			require.LessOrEqual(t, len(res.Output), n)
			require.EqualValues(t, len(all), int64(len(res.Output))+res.Omitted)
			head, tail := res.Output[:res.OmittedAt], res.Output[res.OmittedAt:]
			require.True(t, strings.HasPrefix(all, head) && strings.HasSuffix(all, tail), show(res))
			if n > 100 {
				require.True(t, strings.HasSuffix(head, "\n"), show(res))
				require.Equal(t, byte('\n'), all[len(all)-len(tail)-1], show(res))
			}
		}
		require.Zero(t, sh.exec("echo a").Omitted)
	})
	// No rune is cut.
	b.test(t, "OmittedRunes", func(t *testing.T, sh *shell) {
		for n := 1000; n < 1006; n++ {
			res := sh.exec(
				`i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); printf '\342\202\254'; done`,
				sandbox.MaxOutput(n))
			require.True(t, utf8.ValidString(res.Output), show(res))
			require.Emptyf(t, strings.ReplaceAll(res.Output, "€", ""), "%s", show(res))
			require.EqualValues(t, 3000, int64(len(res.Output))+res.Omitted)
		}
	})
}

// fullScreenField checks FullScreen.
func fullScreenField(t *testing.T, b *box) {
	parallel(t, "FullScreen", func(t *testing.T) {
		for _, c := range []struct{ name, needs, command, leave string }{
			{"vim", "vim", "vim -u NONE -N f", ":q!\r"},
			{"less", "less", "LESS= less numbers", "q"},
		} {
			b.test(t, c.name, func(t *testing.T, sh *shell) {
				b.need(t, c.needs)
				b.needScript(t, "busybox's uses no alternate screen", c.needs+" --version")
				require.False(t, sh.exec("TERM=xterm; seq 1 200 > numbers").FullScreen)
				res := sh.exec(c.command)
				waiting(t, res, sandbox.Keys)
				require.True(t, res.FullScreen, show(res))
				res = sh.input(c.leave)
				exited(t, res, 0)
				require.False(t, res.FullScreen, show(res))
			})
		}
	})
	b.test(t, "KilledFullScreen", func(t *testing.T, sh *shell) {
		res := sh.exec(`sh -c 'printf "\033[?1049h\033[9;2Hmenu\033[1;1H"; kill -9 $$'; echo rc $?`)
		exited(t, res, 0)
		require.Contains(t, res.Output, "rc 137\n")
		require.NotContains(t, res.Output, "menu")
		require.True(t, res.FullScreen, show(res))
		require.Equal(t, " menu", sh.screen().Lines[8])

		res = sh.exec("echo next") // on the normal screen
		same(t, "next\n", res.Output)
		require.False(t, res.FullScreen, show(res))
		require.NotContains(t, sh.screen().Lines, " menu")
	})
}

// incomplete checks Incomplete: whether the shell needs more lines to execute the command.
func incomplete(t *testing.T, b *box) {
	for _, c := range []struct {
		name, command string
		want          bool
	}{
		{"SingleQuote", "echo 'a", true},
		{"DoubleQuote", "echo \"a\necho b", true},
		{"Substitution", "echo $(echo a", true},
		{"Backquote", "echo `echo a", true},
		{"If", "if true; then echo a", true},
		{"Loop", "for i in 1 2; do\necho $i", true},
		{"Case", "case a in\na) echo a", true},
		{"Group", "{ echo a", true},
		{"Subshell", "(echo a", true},
		{"Function", "f() {\necho a", true},
		{"HereDocument", "cat <<END\na\n", true},
		{"Nothing", "", false},
		{"Complete", "echo 'a'; (exit 2)", false},
		{"SyntaxError", "echo a )", false},
		{"Done", "done", false},
		{"OfAScript", "printf 'if true; then\\n' > s; sh ./s", false},
		{"OfAChild", "sh -c 'echo \"a'", false},
	} {
		b.test(t, c.name, func(t *testing.T, sh *shell) {
			res := sh.exec(c.command)
			exited(t, res)
			if c.name == "HereDocument" && !b.bash && !res.Incomplete {
				return // dash and busybox ash do not report it
			}
			require.Equalf(t, c.want, res.Incomplete, "Incomplete: %s", show(res))
		})
	}
}
