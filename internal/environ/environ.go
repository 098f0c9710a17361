// Package environ checks and merges environments: lists of "NAME=value", as in os/exec.
package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Check returns an error that names the first entry that is not NAME=value, or that has a NUL byte,
// which no environment can hold. NAME must not have spaces or control characters. It need not be a
// name that a shell can see: programs can.
func Check(env []string) error {
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok, name == "", strings.ContainsRune(kv, 0):
			return fmt.Errorf("environment %q: want NAME=value without NUL bytes", name)
		case strings.ContainsFunc(name, invalidInName):
			return fmt.Errorf("environment %q: want NAME=value without spaces in NAME", name)
		}
	}
	return nil
}

func invalidInName(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// Merge returns the variables of all lists, sorted by name. If a name occurs several times, the
// last one counts.
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
