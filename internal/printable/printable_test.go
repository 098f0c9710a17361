package printable_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/printable"
	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"": "",
		"a\tb\nżółw 漢字 👨‍👩‍👧 שלום �\n": "a\tb\nżółw 漢字 👨‍👩‍👧 שלום �\n",
		"\x1b]52;c;cm0=\a":         `\x1b]52;c;cm0=\a`,
		"10%\r20%\r\nb\r":          `10%\r20%` + "\n" + `b\r`,
		"\x00\b\v\f\x0e\x7f":       `\x00\b\v\f\x0e\x7f`,
		"\u009b1mC1\u009dx\u0085":  `\u009b1mC1\u009dx\u0085`,
		"\x9b1m\xff\xe2\x80":       `\x9b1m\xff\xe2\x80`,
		"if \u202e\u2066x\u2069 {": `if \u202e\u2066x\u2069 {`,
		"\u200e\u200f\u061c":       `\u200e\u200f\u061c`,
		"a\u2028b\u2029c":          `a\u2028b\u2029c`,
	} {
		require.Equal(t, want, printable.Text(s), "%q", s)
	}
	require.Equal(t, `a\nb\tc\x1b`, printable.Line("a\nb\tc\x1b"))
}

func FuzzText(f *testing.F) {
	for s := range strings.SplitSeq("a\r\r\n|\x1b[31m|\u202e|\xe2\x80\x1b\xae|\xc2\x07\x9b|\\x1b",
		"|") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		safe := printable.Text(s)
		require.True(t, utf8.ValidString(safe), "%q", safe)
		require.Equal(t, safe, printable.Text(safe))
		require.LessOrEqual(t, len(safe), 4*len(s))
		for _, r := range safe {
			text := r == '\n' || r == '\t' || !unicode.IsControl(r)
			require.True(t, text && !unicode.Is(unicode.Bidi_Control, r), "%q of %q", safe, s)
		}
		require.False(t, strings.ContainsAny(printable.Line(s), "\n\t\r"))
	})
}
