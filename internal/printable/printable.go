// Package printable makes text of a box safe to show to a person: on a terminal, in a log, in an
// error.
//
// A box says what it likes. Escape sequences on an operator's terminal change its title and
// clipboard, hide lines or write others; control characters of the C1 range do the same in one
// character; bidirectional controls show text in another order than it is in. [Text] leaves none of
// them. Everything that prints text of a box for a person uses it:
//
//	fmt.Fprintln(os.Stderr, printable.Text(line))
//	return fmt.Errorf("start the kernel: exit status %d: %s", code, printable.Text(said))
//
// What goes into an error by %q is safe without it. The lines of package lastlines are safe
// already.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with each character that could change what a terminal or a page shows around it
// written as Go writes it in a string: \x1b, \u009b, \u202e. These are all control characters but
// "\n" and "\t", the bidirectional controls, the separators of lines and paragraphs, and bytes that
// are not UTF-8. An "\r" before an "\n" is left out. Text without any of them, in whatever script,
// is returned as it is. A text that was made safe stays the same when it is again.
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

// Line returns s as [Text] does, on one line: "\n" and "\t" are written as such.
func Line(s string) string {
	return lineBreaks.Replace(Text(s))
}

var lineBreaks = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// firstUnsafe returns the index of the first character of s that Text replaces, -1 if there is
// none.
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
