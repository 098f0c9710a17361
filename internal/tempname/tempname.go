// Package tempname names the files that are there only while others are being written. Watches tell
// of no name that begins with Prefix.
package tempname

import (
	"crypto/rand"
	"strings"
)

// Prefix begins all such names.
const Prefix = ".sandshell-"

const replacing = Prefix + "replacing-"

// New returns a name for a file that is new.
func New() string { return Prefix + rand.Text() }

// Replacing returns a name for a file that is to take the place of another.
func Replacing() string { return replacing + rand.Text() }

// IsReplacing reports whether Replacing has returned a name.
func IsReplacing(name string) bool { return strings.HasPrefix(name, replacing) }

// Hidden reports whether a name is of this package's kind.
func Hidden(name string) bool { return strings.HasPrefix(name, Prefix) }
