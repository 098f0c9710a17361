// Package shellquote makes words for POSIX shells.
package shellquote

import (
	"regexp"
	"strings"
)

// Quote returns s as one word that means s to any POSIX shell: in single quotes, within which
// nothing is special. A shell cannot hold a zero byte.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// plain is a word that means itself and is no option.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./,:@%+-]*$`)

// Readable is Quote for what people and models read: what needs no quotes gets none.
func Readable(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return Quote(s)
}
