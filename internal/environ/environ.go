// Package environ has what environments take that are lists of "NAME=value", as in os/exec.
package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Check returns an error that names the first entry that is not NAME=value, or has a zero byte, which no environment can hold.
func Check(env []string) error {
	for _, kv := range env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return fmt.Errorf("environment %q: want NAME=value without NUL bytes", name)
		}
	}
	return nil
}

// Merge returns the variables of all lists, sorted by name. Of several with the same name the last counts.
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
