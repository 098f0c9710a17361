// Package shellquote quotes words for POSIX shells.
package shellquote

import (
	"regexp"
	"strings"
)

// Quote returns s as one word for any POSIX shell, in single quotes. s must not contain a NUL byte.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// plain matches a word that needs no quotes and is not an option.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./,:@%+-]*$`)

// Readable is Quote for people and models: it leaves a word as it is that needs no quotes.
func Readable(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return Quote(s)
}
