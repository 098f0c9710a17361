// Package tempname names temporary files that become other files when they are complete. Watches do
// not report names that begin with Prefix.
package tempname

import (
	"crypto/rand"
	"strings"
)

// Prefix begins all such names.
const Prefix = ".sandshell-"

const replacing = Prefix + "replacing-"

// New returns a name for a file that replaces none.
func New() string { return Prefix + rand.Text() }

// Replacing returns a name for a file that is to replace another.
func Replacing() string { return ToReplace(New()) }

// ToReplace returns a name that New has returned as one for a file that is to replace another.
func ToReplace(name string) string { return replacing + strings.TrimPrefix(name, Prefix) }

// IsReplacing reports whether name is of the kind that Replacing returns.
func IsReplacing(name string) bool { return strings.HasPrefix(name, replacing) }

// Hidden reports whether name begins with Prefix.
func Hidden(name string) bool { return strings.HasPrefix(name, Prefix) }
