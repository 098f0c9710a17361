package plugin

import (
	"fmt"
	"slices"
	"strings"
)

// validateAndSort returns the plugins in an order in which each follows those that it requires. The
// installed plugins need not be among them.
func validateAndSort(plugins []Plugin, there map[string]bool) ([]Plugin, error) {
	byName := map[string]Plugin{}
	for _, p := range plugins {
		if err := p.validate(); err != nil {
			return nil, err
		}
		if _, twice := byName[p.Name]; twice {
			return nil, fmt.Errorf("%s: Plugin.Name: two plugins have this name", p.Name)
		}
		byName[p.Name] = p
	}
	var ordered []Plugin
	done := map[string]bool{}
	var visit func(name string, trail []string) error
	visit = func(name string, trail []string) error {
		p, given := byName[name]
		switch {
		case !given && there[name], done[name]:
			return nil
		case !given:
			return fmt.Errorf("%s: Plugin.Requires: %s is neither given nor installed",
				trail[len(trail)-1], name)
		case slices.Contains(trail, name):
			return fmt.Errorf("Plugin.Requires: plugins require each other in a circle: %s",
				strings.Join(append(trail[slices.Index(trail, name):], name), ", "))
		}
		trail = append(trail[:len(trail):len(trail)], name)
		for _, required := range p.Requires {
			if err := visit(required, trail); err != nil {
				return err
			}
		}
		done[name] = true
		ordered = append(ordered, p)
		return nil
	}
	for _, p := range plugins {
		if err := visit(p.Name, nil); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}
