// Package shellquote quotes words for POSIX shells.
package shellquote

import (
	"regexp"
	"strings"
)

// Quote returns s as one word for any POSIX shell: in single quotes, within which nothing is
// special. s must not have a NUL byte, which a shell cannot hold.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// plain matches a word that needs no quotes and is no option.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./,:@%+-]*$`)

// Readable is Quote for people and models: a word that needs no quotes gets none.
func Readable(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return Quote(s)
}
