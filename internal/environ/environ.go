// Package environ checks and merges environments: lists of "NAME=value", as in os/exec.
package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Check returns an error that names the first entry that is not NAME=value, or that contains a NUL
// byte. NAME must not contain spaces or control characters. It need not be the name of a shell
// variable. field is what the caller calls env, as in "Config.Env".
func Check(field string, env []string) error {
	for i, kv := range env {
		if wrong := mistake(kv); wrong != "" {
			return fmt.Errorf("%s[%d]: %s: want NAME=value", field, i, wrong)
		}
	}
	return nil
}

// mistake says what is wrong with an entry; "" means nothing. It does not quote the value, which
// may be a secret.
func mistake(kv string) string {
	name, _, ok := strings.Cut(kv, "=")
	switch {
	case kv == "":
		return "it is empty"
	case name == "":
		return "it has no name"
	case strings.ContainsRune(kv, 0):
		return fmt.Sprintf("%q has a NUL byte", name)
	case !ok:
		return fmt.Sprintf("%q has no \"=\"", name)
	case strings.ContainsFunc(name, invalidInName):
		return fmt.Sprintf("the name %q has a space or a control character", name)
	}
	return ""
}

func invalidInName(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// Merge returns the variables of all lists, sorted by name. If a name occurs several times, Merge
// takes the last one.
func Merge(lists ...[]string) []string {
	last := map[string]string{}
	for _, kv := range slices.Concat(lists...) {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = kv
	}
	merged := make([]string, 0, len(last))
	for _, name := range slices.Sorted(maps.Keys(last)) {
		merged = append(merged, last[name])
	}
	return merged
}
