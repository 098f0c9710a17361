//go:build unix

package harness

import (
	"bufio"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

var elapsed = regexp.MustCompile(` \d+s `)

// TestBar checks what a terminal shows: a bar in one line, no wider than the terminal, and above it
// the tasks that did not pass.
func TestBar(t *testing.T) {
	ptm, tty, err := pty.Open()
	require.NoError(t, err)
	defer ptm.Close()
	defer tty.Close()
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 50}))
	p := newProgress(tty, 4, 1)
	p.taskBegan("first")
	p.taskBegan("second-" + strings.Repeat("x", 50))
	p.taskEnded(Result{Task: "first", Status: Pass})
	p.taskEnded(Result{Task: "second-" + strings.Repeat("x", 50), Status: Fail,
		Reason: "check: exit status 1\nmore of it"})
	p.end()
	_, err = tty.WriteString("after\n")
	require.NoError(t, err)

	var drawn []string // the texts that the terminal's lines have had
	for lines := bufio.NewReader(ptm); ; {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		for text := range strings.SplitSeq(strings.TrimRight(line, "\r\n"), "\r\x1b[K") {
			if text != "" {
				require.LessOrEqual(t, utf8.RuneCountInString(text), 50)
				drawn = append(drawn, elapsed.ReplaceAllString(text, " "))
			}
		}
		if strings.HasSuffix(line, "after\r\n") {
			break
		}
	}
	require.Equal(t, []string{
		"1 of 4 tasks have a result already",
		"[#####---------------] 1/4  first", "[#####---------------] 1/4  first second-xxxx…",
		"[##########----------] 2/4 1 pass second-xxxx…",
		"fail second-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…",
		"[###############-----] 3/4 1 pass, 1 fail ", "after",
	}, drawn)
}
