package tools

import (
	"strings"
	"testing"

	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/stretchr/testify/require"
)

// TestEditorsKeepLineEnds edits files with both editors, that of Files and that of Skills.
func TestEditorsKeepLineEnds(t *testing.T) {
	t.Parallel()
	box := local(t)
	require.NoError(t, box.InitPlugins(t.Context(), agentskills.Plugin()))
	editors := map[string]struct {
		set  *Set
		tool string
	}{
		"Files":  {combined(t, Files(box.Files(), Config{})), "edit"},
		"Skills": {combined(t, Skills(box, patient)), "str_replace"},
	}
	for _, c := range []struct{ name, content, old, new, want string }{
		{"one line by two", "a\r\nb\r\nc\r\n", "b", "B1\nB2", "a\r\nB1\r\nB2\r\nc\r\n"},
		{"several lines", "a\r\nb\r\nc\r\nd\r\n", "b\nc", "B\nC", "a\r\nB\r\nC\r\nd\r\n"},
		{"with their ends", "a\r\nb\r\nc\r\n", "b\nc\n", "B\n", "a\r\nB\r\n"},
		{"from an end to an end", "a\r\nb\r\nc\r\n", "\nb\n", "\nB\nB\n", "a\r\nB\r\nB\r\nc\r\n"},
		{"lines go", "a\r\nb\r\nc\r\n", "a\nb\n", "", "c\r\n"},
		{"all with CRLF", "a\r\nb\r\n", "a\r\nb", "A\r\nB\r\nC", "A\r\nB\r\nC\r\n"},
		{"CRLF for a file of LF", "a\nb\n", "a\r\nb", "A\r\nB\r\nC", "A\nB\nC\n"},
		{"after the last end", "a\r\nb", "b", "b\nc", "a\r\nb\r\nc"},
		{"of a file without one", "a", "a", "b\nc", "b\nc"},
		{"mixed, at CRLF", "a\nb\r\nc\n", "b", "b\nB", "a\nb\r\nB\r\nc\n"},
		{"mixed, at LF", "a\r\nb\nc\r\n", "b", "B\nb", "a\r\nB\nb\nc\r\n"},
		{"bytes that are no text", "\xff\r\nb\r\n", "b", "B\nC", "\xff\r\nB\r\nC\r\n"},
		{"an accent", "ä\r\nb\r\n", "ä\nb", "ö\nb\nü", "ö\r\nb\r\nü\r\n"},
		{"a byte order mark", "\xef\xbb\xbfa\r\nb\r\n", "a\nb", "A\nB", "\xef\xbb\xbfA\r\nB\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, e := range editors {
				require.NoError(t, box.Files().WriteFile(t.Context(), "f", []byte(c.content),
					0o644))
				text(t, e.set, e.tool, map[string][]any{
					"edit":        {"path", "f", "old", c.old, "new", c.new},
					"str_replace": {"file", "f", "old", c.old, "new", c.new},
				}[e.tool]...)
				got, err := box.Files().ReadFile(t.Context(), "f", 0)
				require.NoError(t, err)
				require.Equal(t, c.want, string(got), name)
			}
		})
	}
}

// TestReplaceText shows that lines that an edit does not change keep their ends.
func TestReplaceText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content, old, new, want string
		lines                   []int
	}{
		{"a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nb\nC\nX\nd", "a\r\nb\nC\r\nX\r\nd\n", []int{1}},
		{"a\r\nx\nx\r\nx", "x", "y\nz", "a\r\ny\nz\ny\r\nz\r\ny\r\nz", []int{2, 3, 4}},
		{"a\r\na\r\na\r\n", "a\na", "b", "b\r\na\r\n", []int{1}},
		{"a\rb\r\n", "a\rb", "c\rd\n", "c\rd\r\n\r\n", []int{1}},
		{"\r\n\r\n\r\n", "\n\n", "\n", "\r\n\r\n", []int{1}},
		{"a\r\n", "b", "c", "a\r\n", nil},
		{"a\r\nb\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\nc\r\n", []int{1}},
	} {
		got, lines := replaceText(c.content, c.old, c.new)
		require.Equal(t, c.want, got)
		require.Equal(t, c.lines, lines)
	}
}

// FuzzReplaceText shows that an edit changes the same text whether a file has CRLF or LF.
func FuzzReplaceText(f *testing.F) {
	f.Add("a\nb\nc\n", "b\n", "x\ny\n")
	f.Add("a\n\n\n", "\n\n", "\n")
	f.Add("a\nb", "b", "c\nb")
	f.Fuzz(func(t *testing.T, content, old, new string) {
		for _, s := range []*string{&content, &old, &new} {
			*s = strings.ReplaceAll(*s, "\r", "?")
		}
		if old == "" {
			return
		}
		crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
		unix, lines := replaceText(content, old, new)
		require.Equal(t, strings.ReplaceAll(content, old, new), unix)
		got, same := replaceText(crlf(content), old, new)
		require.Equal(t, lines, same)
		if strings.Contains(content, "\n") {
			require.Equal(t, crlf(unix), got)
		}
	})
}
