package sandboxtest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// fullScreen types keys to full-screen programs, and looks at Screen.
func fullScreen(t *testing.T, b *box) {
	pagers(t, b)
	screens(t, b)
	b.test(t, "vi", func(t *testing.T, sh *shell) {
		b.need(t, "vi")
		waiting(t, sh.exec("vi f"), sandbox.Keys)
		shows(t, sh, 1, "~")
		waiting(t, sh.input("ihello world"), sandbox.Keys)
		shows(t, sh, 0, "hello world")
		waiting(t, sh.input("\x1b"), sandbox.Keys)
		// busybox's vi waits after the escape, which may begin a key, and between the keys
		b.eventually(t, func() bool {
			return !strings.HasPrefix(sh.screen().Lines[sandbox.DefaultRows-1], "I ")
		}, "the end of vi's insert mode")
		waiting(t, sh.input("yyp"), sandbox.Keys)
		b.eventually(t, func() bool {
			return sh.screen().Lines[1] == "hello world"
		}, "a second line on the screen")
		exited(t, sh.input(":wq\r"), 0)
		same(t, "hello world\nhello world\n", sh.output("cat f"))
	})
	b.test(t, "top", func(t *testing.T, sh *shell) {
		b.need(t, "top")
		waiting(t, sh.exec("top"), sandbox.Keys)
		b.eventually(t, func() bool {
			return strings.Contains(strings.Join(sh.screen().Lines, "\n"), "PID")
		}, "top's table on the screen")
		exited(t, sh.input("q"), 0)
	})
	b.test(t, "Curses", func(t *testing.T, sh *shell) {
		b.need(t, "python3")
		b.needScript(t, "python3 in this box has no curses", "python3 -c 'import curses'")
		res := sh.exec(`python3 -c 'import curses
curses.wrapper(lambda s: (s.addstr(2, 3, "in curses"), s.refresh(), s.getkey()))'`)
		waiting(t, res, sandbox.Keys)
		require.NotContains(t, res.Output, "in curses")
		shows(t, sh, 2, "   in curses")
		exited(t, sh.input("x"), 0)
	})
	// ^C does not end these programs.
	parallel(t, "Interrupted", func(t *testing.T) {
		for _, c := range []named{{"less", "less numbers"}, {"vi", "vi f"}, {"python3", "python3"},
			{"top", "top"}} {
			b.test(t, c.name, func(t *testing.T, sh *shell) {
				b.need(t, c.name)
				sh.output("seq 1 200 > numbers")
				waiting(t, sh.exec(c.command), sandbox.Keys, sandbox.Line)
				sh.interrupt()
				sh.lives()
				sh.askAndAnswer() // the terminal's settings are reset
			})
		}
	})
	b.test(t, "OneKey", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec("stty -icanon -echo min 1; head -c 1 | od -An -tx1; stty icanon echo"),
			sandbox.Keys)
		res := sh.input("\x1b")
		exited(t, res, 0)
		same(t, "1b", strings.TrimSpace(res.Output))
	})
}

// pagers runs a pager, and programs that use one only if told so.
func pagers(t *testing.T, b *box) {
	b.test(t, "less", func(t *testing.T, sh *shell) {
		b.need(t, "less")
		b.needScript(t, "the box's less is busybox's, whose pages differ", "less --version")
		sh.output("seq 1 200 > numbers")
		waiting(t, sh.exec("LESS= less numbers"), sandbox.Keys)
		shows(t, sh, 0, "1")
		shows(t, sh, 22, "23")
		waiting(t, sh.input(" "), sandbox.Keys)
		shows(t, sh, 0, "24")
		waiting(t, sh.input("G"), sandbox.Keys)
		shows(t, sh, 22, "200")
		waiting(t, sh.input("/17\n"), sandbox.Keys)
		res := sh.input("q")
		exited(t, res, 0)
		require.NotContains(t, res.Output, "\n17\n", "the alternate screen is no part of Output")
	})
	b.test(t, "GitLog", func(t *testing.T, sh *shell) {
		b.need(t, "git", "less")
		sh.output("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty " +
			"-m \"$(seq 1 100)\"")
		res := sh.exec("git log")
		exited(t, res, 0)
		require.Contains(t, res.Output, "    100\n")
		waiting(t, sh.exec("GIT_PAGER=less LESS= git log"), sandbox.Keys)
		require.Contains(t, strings.Join(sh.screen().Lines, "\n"), "    10\n")
		exited(t, sh.input("q"), 0)
	})
	b.test(t, "PagersAreOff", func(t *testing.T, sh *shell) {
		same(t, "cat\n", sh.output(`sh -c 'echo "$PAGER"'`))
	})
}

// screens looks at Screen.
func screens(t *testing.T, b *box) {
	b.test(t, "ScreenOfALine", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(`printf '\033[2J\033[Hhello   \nname: '; read -r n`), sandbox.Line)
		screen := sh.screen()
		require.Len(t, screen.Lines, sandbox.DefaultRows)
		require.Equal(t, "hello", screen.Lines[0])
		require.Equal(t, "name:", screen.Lines[1])
		require.Equal(t, []int{1, 6}, []int{screen.Row, screen.Col}, "the cursor")
		require.Empty(t, screen.Lines[2])
		exited(t, sh.input("ann\n"), 0)
		require.Equal(t, "name: ann", sh.screen().Lines[1], "after the answer")
	})
	b.test(t, "ScreenScrolls", func(t *testing.T, sh *shell) {
		waiting(t, sh.exec(`printf '\033[2J\033[H'; seq 1 1000; read -r n`), sandbox.Line)
		screen := sh.screen()
		require.Equal(t, "1000", screen.Lines[22])
		require.Equal(t, "978", screen.Lines[0])
		exited(t, sh.input("\n"), 0)
	})
	b.test(t, "ScreenWhileRunning", func(t *testing.T, sh *shell) {
		m := b.marker(t)
		running(t, sh.exec(`printf '\033[2J\033[Hbusy'; sleep `+string(m),
			sandbox.Until(regexp.MustCompile("busy"))))
		require.Equal(t, "busy", sh.screen().Lines[0])
		sh.interrupt()
		b.gone(t, m)
	})
	// Each of these sequences has crashed a terminal emulator.
	b.test(t, "ScreenOfNastySequences", func(t *testing.T, sh *shell) {
		sh.output(`printf '\033[-5P\033[4000000000I\033[99999999999b\033[2147483647;2147483647H\033[0;0r\033[?69h\033[9999S\033[9999T\033[9999L\303'`)
		sh.screen()
		sh.lives()
		sh.output(`printf '\033c\033[2J\033[H'; printf 'still here'`)
		require.Contains(t, strings.Join(sh.screen().Lines, "\n"), "still here")
	})
}

// shows checks a line of the screen.
func shows(t testing.TB, sh *shell, row int, line string) {
	t.Helper()
	screen := sh.screen()
	require.Equalf(t, line, screen.Lines[row], "row %d of the screen:\n%s", row,
		strings.Join(screen.Lines, "\n"))
}

// sizes sets and changes the terminal's size.
func sizes(t *testing.T, b *box) {
	b.test(t, "Stty", func(t *testing.T, sh *shell) {
		same(t, "24 80\n", sh.output("stty size"))
		sh.resize(40, 100)
		same(t, "40 100\n", sh.output("stty size"))
		require.Len(t, sh.screen().Lines, 40)
		sh.resize(10, 300)
		same(t, "10 300\n", sh.output("stty size"))
		require.Len(t, sh.screen().Lines, 10)
		for i := range 20 { // the next command does not overtake Resize
			sh.resize(30+i, 100+i)
			same(t, fmt.Sprintf("%d %d\n", 30+i, 100+i), sh.output("stty size"))
		}
	})
	parallel(t, "OpenedWith", func(t *testing.T) {
		sh := b.open(t, sandbox.Size(30, 90))
		same(t, "30 90\n", sh.output("stty size"))
		require.Len(t, sh.screen().Lines, 30)
		sh.lives()
	})
	b.test(t, "WhileRunning", func(t *testing.T, sh *shell) {
		running(t, sh.begins(
			`sh -c 'trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done'`))
		sh.resize(33, 77)
		res := sh.wait(sandbox.Until(regexp.MustCompile(`33 77\n`)), sandbox.Yield(grace))
		require.Equal(t, "33 77\n", res.Matched, show(res))
		exited(t, sh.interrupt(), 130)
	})
	b.test(t, "FullScreenProgram", func(t *testing.T, sh *shell) {
		b.need(t, "less")
		sh.output("seq 1 200 > numbers")
		waiting(t, sh.exec("LESS= less numbers"), sandbox.Keys)
		sh.resize(40, 100)
		b.eventually(t, func() bool {
			screen := sh.screen()
			return len(screen.Lines) == 40 && screen.Lines[38] == "39"
		}, "less drawn again on 40 rows")
		exited(t, sh.input("q"), 0)
	})
	b.test(t, "Tiny", func(t *testing.T, sh *shell) {
		sh.resize(1, 1)
		sh.lives()
		sh.screen()
		sh.resize(2, 2) // busybox's stty prints 24 or 80 for 1
		same(t, "2 2\n", sh.output("stty size"))
		sh.lives()
		sh.screen()
		sh.resize(500, 1000)
		sh.lives()
		require.Len(t, sh.screen().Lines, 500)
	})
	// Resize may return an error, but the session goes on.
	b.test(t, "Impossible", func(t *testing.T, sh *shell) {
		for _, size := range [][2]int{{0, 0}, {-1, -1}, {1 << 20, 1 << 20}} {
			within(b, t, "Resize", noResult(func(ctx context.Context) error {
				return sh.Resize(ctx, size[0], size[1])
			}))
			sh.lives()
		}
		sh.resize(24, 80)
		same(t, "24 80\n", sh.output("stty size"))
		sh.screen()
	})
}
