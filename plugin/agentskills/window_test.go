package agentskills_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "window")
		here := strings.TrimSpace(do(t, b, "pwd"))
		numbers(t, b, "file", 250)
		window := func(from, to int) string {
			var s strings.Builder
			fmt.Fprintf(&s, "[File: %s/file (250 lines total)]\n", here)
			switch {
			case from == 2:
				s.WriteString("(1 more line above)\n")
			case from > 1:
				fmt.Fprintf(&s, "(%d more lines above)\n", from-1)
			}
			for i := from; i <= to; i++ {
				fmt.Fprintf(&s, "%d:line %d\n", i, i)
			}
			if to < 250 {
				fmt.Fprintf(&s, "(%d more lines below)\n", 250-to)
			}
			return s.String()
		}
		for _, c := range []struct {
			command  string
			from, to int
		}{
			{"open file", 1, 100},
			{"open ./file 120", 104, 203},
			{"open " + here + "/../window/file 18", 2, 101},
			{"cd .. && scroll_down; cd window", 100, 199},
			{"scroll_up", 2, 101},
			{"scroll_up", 1, 100},
			{"goto 249", 151, 250},
			{"scroll_down", 151, 250},
			{"SANDSHELL_WINDOW=10 goto 20", 19, 28},
			{"open file", 1, 100},
		} {
			require.Equal(t, window(c.from, c.to), do(t, b, c.command), c.command)
		}

		do(t, b, `: >empty; printf 'a\tb\r\n\033[31mred\302\233x\007\177\r\nlast' >odd; printf 'a\0b\n' >binary; mkdir dir; mkfifo fifo`)
		require.Equal(t, fmt.Sprintf("[File: %s/empty (0 lines total)]\n(The file is empty: "+
			"insert 0 writes to it.)\n", here), do(t, b, "open empty"))
		require.Equal(t, fmt.Sprintf("[File: %s/odd (3 lines total, which end with "+
			"CRLF)]\n1:a\tb\n2:^[[31mred?x^G^?\n3:last\n", here), do(t, b, "open odd"))
		do(t, b, `awk 'BEGIN { for (i = 0; i < 999; i++) printf "x"; for (i = 0; i < 1000; i++) printf "\303\244" }' >long`)
		require.Contains(t, do(t, b, "open long"), "1:"+strings.Repeat("x", 999)+
			"… (2000 more bytes)\n")
		refused(t, b, 1, "open none", "There is no file "+here+"/none.")
		refused(t, b, 1, "open dir", "dir is a directory.")
		refused(t, b, 1, "open fifo", "fifo is a device, a socket or a pipe")
		refused(t, b, 1, "open binary", "binary is binary")
		refused(t, b, 1, "open file 251", "has 250 lines, so there is no line 251.")
		refused(t, b, 2, "open", "open: an argument is missing\nusage: open PATH [LINE]\n")
		refused(t, b, 2, "open ''", "a file's name is empty")
		refused(t, b, 2, "open file 1 2", "too many arguments")
		for _, bad := range []string{"0", "01", "-1", "1x", "''", "99999999999", "'*'"} {
			refused(t, b, 2, "goto -- "+bad, "LINE is a line number from 1")
		}
		refused(t, b, 2, "goto -x", "there is no option -x; if it is an argument, put -- before it")
		require.Contains(t, do(t, b, "open --help"), "open PATH [LINE]\n\nOpens a file")
		require.Contains(t, do(t, b, "goto 1"), here+"/long", "what was refused has opened nothing")
	})
}

// The open file belongs to its session: another session, a Run, and the shell that replaces one
// that has ended do not have it.
func TestSessions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "sessions")
		numbers(t, b, "one", 10)
		numbers(t, b, "two", 20)
		here := strings.TrimSpace(do(t, b, "pwd"))
		do(t, b, "open one")
		s, err := b.Open(t.Context(), sandbox.Dir(here))
		require.NoError(t, err)
		refused(t, s, 1, "goto 1", "No file is open in this session: open one first.")
		do(t, s, "open two")
		require.Contains(t, do(t, b, "(goto 1) | cat"), "/one (10 lines")
		require.Contains(t, do(t, s, "sh -c 'scroll_down; exit'"), "/two (20 lines")
		count := `ls "${SKILLS:-$(dirname "$(command -v open)")/../sessions}" | wc -l`
		require.Equal(t, "2", strings.TrimSpace(do(t, b, count)))

		var out, errs bytes.Buffer
		code, err := b.Run(t.Context(), &sandbox.Cmd{Args: []string{"open", "two", "20"}, Dir: here,
			Stdout: &out, Stderr: &errs})
		require.NoError(t, err)
		require.Zero(t, code, errs.String())
		require.Contains(t, out.String(), "20:line 20\n")
		code, err = b.Run(t.Context(), &sandbox.Cmd{Args: []string{"goto", "1"}, Dir: here,
			Stderr: &errs})
		require.NoError(t, err)
		require.Equal(t, 1, code)
		require.Contains(t, errs.String(), "No file is open in this session")
		code, err = b.Run(t.Context(), &sandbox.Cmd{Args: []string{"edit", "2:9", "one"}, Dir: here,
			Stdin: strings.NewReader("x\n"), Stderr: &errs})
		require.NoError(t, err)
		require.Zero(t, code, errs.String())
		require.Equal(t, "line 1\nx\nline 10\n", do(t, b, "cat one"))

		// When a session opens a file, the files of sessions that have ended are removed.
		require.NoError(t, s.Close())
		res, err := b.Execute(t.Context(), "exit")
		require.NoError(t, err)
		require.True(t, res.Restarted)
		refused(t, b, 1, "goto 1", "No file is open in this session: open one first.")
		do(t, b, "open two")
		require.Equal(t, "1", strings.TrimSpace(do(t, b, count)))
	})
}

// For a file of a million lines, the output is bounded and quick.
func TestLarge(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "large")
		numbers(t, b, "file", 1_000_000)
		began := time.Now()
		for _, c := range []struct{ command, last string }{
			{"open file 999999", "1000000:line 1000000\n"},
			{"search_file 'line 99999'", "99999:line 99999\n999990:line 999990\n999991:line " +
				"999991\n999992:line 999992\n999993:line 999993\n" +
				"999994:line 999994\n999995:line 999995\n999996:line 999996\n999997:line " +
				"999997\n999998:line 999998\n999999:line 999999\n"},
			{"search_file line", "100:line 100\n(999900 more of 1000000 matches: give more of " +
				"the text)\n"},
			{"search_dir line", "./file:100: line 100\n(999900 more matches, 1000000 in 1 files: " +
				"give more of the text, or a directory)\n"},
			{"edit 500000:500000 <<'END'\nnew\nEND", "500010:line 500010\n(499990 more lines " +
				"below)\n"},
			{"str_replace 'line 999999\n' ''", "999999:line 1000000\n"},
		} {
			output := do(t, b, c.command)
			require.Truef(t, strings.HasSuffix(output, c.last), "%s: %s", c.command, output)
			require.Less(t, len(output), 10000)
		}
		t.Logf("%s: %v", t.Name(), time.Since(began))
		require.Less(t, time.Since(began), testenv.Limit)
	})
}
