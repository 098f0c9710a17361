package api

import (
	"maps"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/environ"
)

// Variables returns the variables of a body's field as "NAME=value".
func Variables(field string, of map[string]string) (env []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if strings.Contains(name, "=") {
			return nil, Invalid("body", "%s: the variable %q: a name cannot have \"=\"", field,
				name)
		}
		env = append(env, name+"="+of[name])
	}
	if err := environ.Check(field, env); err != nil {
		return nil, Invalid("body", "%v", err)
	}
	return env, nil
}
