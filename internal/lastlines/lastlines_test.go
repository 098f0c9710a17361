package lastlines_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	for output, want := range map[string]string{
		"": "", "\n\n": "", "a": "a", "a\n": "a", "\na \r\n\n\nb\n \n": "a\nb",
		"1\n2\n3\n4\n5\n6": "2\n3\n4\n5\n6", "\xff\xc3a\n": "a",
		"a\x1b]0;title\a\n\u202eb": `a\x1b]0;title\a` + "\n" + `\u202eb`,
	} {
		require.Equal(t, want, lastlines.Of(output), "%q", output)
	}
	require.Equal(t, "… "+strings.Repeat("x", 1000), lastlines.Of("a\n"+strings.Repeat("x", 5000)))
	require.Equal(t, "… "+strings.Repeat("ä", 499)+"x", lastlines.Of(strings.Repeat("ä", 5000)+"x"),
		"no half a character")
}

func TestWriter(t *testing.T) {
	var w lastlines.Writer
	for i := range 100_000 {
		fmt.Fprintln(&w, "line", i)
	}
	require.Equal(t, "line 99995\nline 99996\nline 99997\nline 99998\nline 99999", w.String())
}
