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

// callers: what a call may ask for besides an end: silence, an answer to questions that nobody will
// give, typing alone.
func callers(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Idle", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		m := b.marker(t)
		res := sh.exec("echo one; echo two; sleep "+string(m), sandbox.Idle(500*time.Millisecond))
		running(t, res)
		same(t, "one\ntwo\n", res.Output)
		require.Equal(t, -1, res.ExitCode)
		res = sh.wait(sandbox.Idle(50 * time.Millisecond))
		running(t, res)
		require.Empty(t, res.Output)
		exited(t, sh.interrupt(), 130)
		b.gone(t, m)
		exited(t, sh.exec("(exit 4)", sandbox.Idle(grace)), 4)
		sh.lives()
	})
	t.Run("IdleIsSilence", func(t *testing.T) { // not the time since the call's begin
		t.Parallel()
		sh := b.open(t)
		res := sh.exec("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.2; done; (exit 4)",
			sandbox.Idle(1200*time.Millisecond))
		exited(t, res, 4)
		same(t, lines(1, 8), res.Output)
		sh.lives()
	})
	t.Run("EndInput", func(t *testing.T) {
		t.Parallel()
		end := sandbox.AtQuestion(sandbox.EndInput)
		sh := b.open(t)
		res := sh.exec("cat; echo after", end)
		exited(t, res, 0)
		same(t, "after\n", res.Output)
		exited(t, sh.exec("read -r x", end), 1)
		res = sh.exec("cat; echo first; read -r x; echo \"<$x>\"", end) // once
		waiting(t, res, sandbox.Line)
		same(t, "first\n", res.Output)
		exited(t, sh.input("y\n", end), 0)
		sh.lives()
	})
	t.Run("EndInputOfInput", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		waiting(t, sh.exec("cat"), sandbox.Line)
		res := sh.input("a\n", sandbox.AtQuestion(sandbox.EndInput))
		exited(t, res, 0)
		same(t, "a\na\n", res.Output)
		sh.lives()
	})
	t.Run("Fail", func(t *testing.T) {
		t.Parallel()
		fail := sandbox.AtQuestion(sandbox.Fail)
		sh := b.open(t)
		res := sh.fails(sandbox.ErrQuestion, "Execute",
			sh.executes(`printf 'name? '; read -r x; echo "<$x>"`, fail))
		require.NotNil(t, res)
		exited(t, res, 130)
		require.True(t, strings.HasPrefix(res.Output, "name? "), show(res))
		sh.lives()
		exited(t, sh.exec("(exit 4)", fail), 4)
		waiting(t, sh.exec("read -r x; read -r y"), sandbox.Line)
		exited(t, sh.fails(sandbox.ErrQuestion, "Input", sh.inputs("a\n", fail)), 130)
		sh.lives()
	})
	t.Run("Type", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		typed := func(text string) error {
			_, err := within(b, t, "Type", empty(func(ctx context.Context) error {
				return sh.Type(ctx, text)
			}))
			return err
		}
		require.ErrorIs(t, typed("echo typed\n"), sandbox.ErrIdle)
		waiting(t, sh.exec("read -r x; until [ -e go ]; do sleep 0.02; done; echo \"<$x>\""),
			sandbox.Line)
		require.NoError(t, typed("on"))
		require.NoError(t, typed("e\n")) // returns while the command goes on
		b.script(t, `: > "$1"`, sh.dir+"/go")
		res := sh.wait()
		exited(t, res, 0)
		same(t, "one\n<one>\n", res.Output)
		require.ErrorIs(t, typed("echo typed\n"), sandbox.ErrIdle)
		sh.lives()
	})
}

// resultFields: what else a Result says, and when.
func resultFields(t *testing.T, b *box) {
	t.Parallel()
	t.Run("ExitCode", func(t *testing.T) { // only of what has ended
		t.Parallel()
		sh := b.open(t)
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
		b.script(t, `: > "$1"`, sh.dir+"/go")
		exited(t, sh.wait(), 4)
		sh.lives()
	})
	t.Run("OmittedAt", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
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
		res := sh.exec("echo a")
		require.Zero(t, res.Omitted)
		sh.lives()
	})
	t.Run("OmittedRunes", func(t *testing.T) { // none is cut
		t.Parallel()
		sh := b.open(t)
		for n := 1000; n < 1006; n++ {
			res := sh.exec(
				`i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); printf '\342\202\254'; done`,
				sandbox.MaxOutput(n))
			require.True(t, utf8.ValidString(res.Output), show(res))
			require.Emptyf(t, strings.ReplaceAll(res.Output, "€", ""), "%s", show(res))
			require.EqualValues(t, 3000, int64(len(res.Output))+res.Omitted)
		}
		sh.lives()
	})
	t.Run("FullScreen", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ name, needs, command, leave string }{
			{"vim", "vim", "vim -u NONE -N f", ":q!\r"},
			{"less", "less", "LESS= less numbers", "q"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				b.need(t, c.needs)
				if code, _, _ := b.sh(t, c.needs+" --version"); code != 0 {
					b.suite.skip(t, "the box's "+c.needs+" is busybox's, which leaves the screen "+
						"as it is")
				}
				sh := b.open(t)
				require.False(t, sh.exec("TERM=xterm; seq 1 200 > numbers").FullScreen)
				res := sh.exec(c.command)
				waiting(t, res, sandbox.Keys)
				require.True(t, res.FullScreen, show(res))
				res = sh.input(c.leave)
				exited(t, res, 0)
				require.False(t, res.FullScreen, show(res))
				sh.lives()
			})
		}
	})
	t.Run("KilledFullScreen", func(t *testing.T) {
		t.Parallel()
		sh := b.open(t)
		res := sh.exec(`sh -c 'printf "\033[?1049h\033[9;2Hmenu\033[1;1H"; kill -9 $$'; echo rc $?`)
		exited(t, res, 0)
		require.Contains(t, res.Output, "rc 137\n")
		require.NotContains(t, res.Output, "menu")
		require.True(t, res.FullScreen, show(res))
		require.Equal(t, " menu", sh.screen().Lines[8])

		res = sh.exec("echo next") // it finds the normal screen
		same(t, "next\n", res.Output)
		require.False(t, res.FullScreen, show(res))
		require.NotContains(t, sh.screen().Lines, " menu")
	})
	t.Run("CursorWhereAsked", func(t *testing.T) { // a terminal's size is asked for so
		t.Parallel()
		sh := b.open(t)
		same(t, "24 x 80, 5 7\n", sh.output(`old=$(stty -g); stty raw -echo min 0 time 100
printf '\0337\033[r\033[999;999H\033[6n\0338\033[5;7H\033[6n\033[9;9H' >/dev/tty
answer() { dd bs=1 count=$1 2>/dev/null </dev/tty | tr -dc '0-9;' | tr ';' ' '; }
a=$(answer 8) b=$(answer 6); stty "$old"; echo "${a% *} x ${a#* }, $b"`))
	})
	t.Run("Incomplete", func(t *testing.T) { incomplete(t, b) })
	t.Run("OfAJob", func(t *testing.T) {
		t.Parallel()
		res, err := within(b, t, "Background", func(ctx context.Context) (*sandbox.Result, error) {
			job, err := b.Background(ctx, "echo x")
			if err != nil {
				return nil, err
			}
			return job.Wait(ctx)
		})
		require.NoError(t, err)
		require.Equal(t, sandbox.Exited, res.State)
		require.Zero(t, res.Omitted, "Omitted")
		same(t, "x\n", res.Output)
	})
}

// incomplete: the shell wanted more than it was given.
func incomplete(t *testing.T, b *box) {
	t.Parallel()
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
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			res := sh.exec(c.command)
			exited(t, res)
			if c.name == "HereDocument" && !b.bash && !res.Incomplete {
				return // dash and busybox ash say nothing of it
			}
			require.Equalf(t, c.want, res.Incomplete, "Incomplete: %s", show(res))
			sh.lives()
		})
	}
}
