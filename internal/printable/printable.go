// Package printable makes text of a box safe to show to a person: on a terminal, in a log, in an
// error.
//
// A box may print anything. Escape sequences can change the title and the clipboard of an
// operator's terminal, and hide or forge lines. Control characters of the C1 range do the same in
// one character. Bidirectional controls show text in another order than it has. [Text] escapes all
// of them. All code that prints text of a box for a person uses it:
//
//	fmt.Fprintln(os.Stderr, printable.Text(line))
//	return fmt.Errorf("start the kernel: exit status %d: %s", code, printable.Text(output))
//
// Text that is formatted with %q is safe without it, and so are the results of package lastlines.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with each unsafe character escaped as in a Go string: \x1b, \u009b, \u202e. Unsafe
// are all control characters except "\n" and "\t", the bidirectional controls, the separators of
// lines and paragraphs, and bytes that are not UTF-8. An "\r" before an "\n" is dropped. Text
// without unsafe characters is returned as it is, in any script. So Text(Text(s)) is Text(s).
func Text(s string) string {
	i := firstUnsafe(s)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for ; i >= 0; i = firstUnsafe(s) {
		b.WriteString(s[:i])
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case strings.HasPrefix(s[i:], "\r\n"):
		case r == utf8.RuneError:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[i+size:]
	}
	b.WriteString(s)
	return b.String()
}

// Line is [Text], but also escapes "\n" and "\t", so that the result is one line.
func Line(s string) string {
	return lineBreaks.Replace(Text(s))
}

var lineBreaks = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// firstUnsafe returns the index of the first character of s that Text replaces, or -1.
func firstUnsafe(s string) int {
	for i, r := range s {
		if r >= ' ' && r < 0x7f || r == '\n' || r == '\t' {
			continue
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size > 1 {
				continue
			}
			return i
		}
		if unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return i
		}
	}
	return -1
}
