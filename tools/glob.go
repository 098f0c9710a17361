package tools

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Globs are the alternatives of a pattern for paths, each split at its slashes.
type globs [][]string

// maxGlobs is how many alternatives the braces of a pattern may stand for.
const maxGlobs = 100

// splitGlobs returns the alternatives of a pattern. given is the pattern as the model gave it.
func splitGlobs(pattern, given string) (globs, error) {
	var all globs
	alternatives, ok := expandBraces(pattern)
	if !ok {
		return nil, fmt.Errorf("the braces in the pattern %q stand for more than %d patterns: "+
			"give fewer", abbreviate(given), maxGlobs)
	}
	for _, one := range alternatives {
		segments := strings.Split(one, "/")
		for _, s := range segments {
			if _, err := path.Match(s, ""); err != nil {
				return nil, fmt.Errorf("in the pattern %q, the part %q has a [ without a ], or "+
					"ends in \\: write \\[ or \\\\ for the character itself", given, s)
			}
		}
		all = append(all, segments)
	}
	return all, nil
}

// expandBraces returns what a pattern with braces stands for: a{b,c} for ab and ac. Braces without
// a comma stand for themselves. ok is false if there is too much.
func expandBraces(pattern string) (all []string, ok bool) {
	open := strings.LastIndexByte(pattern, '{') // so that it has no braces inside
	for open >= 0 {
		length := strings.IndexByte(pattern[open:], '}')
		if length > 0 && strings.Contains(pattern[open:open+length], ",") {
			for _, part := range strings.Split(pattern[open+1:open+length], ",") {
				more, ok := expandBraces(pattern[:open] + part + pattern[open+length+1:])
				if all = append(all, more...); !ok || len(all) > maxGlobs {
					return nil, false
				}
			}
			return all, true
		}
		open = strings.LastIndexByte(pattern[:open], '{')
	}
	return []string{pattern}, true
}

// match reports whether a path fits.
func (g globs) match(name string) bool {
	return slices.ContainsFunc(g, func(segments []string) bool {
		return matches(segments, strings.Split(name, "/"))
	})
}

// mayContain reports whether a path below the directory name can fit.
func (g globs) mayContain(name string) bool {
	return slices.ContainsFunc(g, func(segments []string) bool {
		return mayContain(segments, strings.Split(name, "/"))
	})
}

// name reports whether a part of the pattern is this name.
func (g globs) name(name string) bool {
	return slices.ContainsFunc(g, func(s []string) bool { return slices.Contains(s, name) })
}

// matches reports whether the parts of a path match the segments of a valid pattern. Where they do
// not, only the last "**" before takes one part more: what the others take can stay.
func matches(segments, parts []string) bool {
	segment, part := 0, 0
	last, taken := -1, 0 // the last "**", and the first part that it does not take
	for part < len(parts) {
		switch {
		case segment < len(segments) && segments[segment] == "**":
			last, taken = segment, part
			segment++
		case segment < len(segments) && matchesPart(segments[segment], parts[part]):
			segment++
			part++
		case last >= 0:
			taken++
			segment, part = last+1, taken
		default:
			return false
		}
	}
	for segment < len(segments) && segments[segment] == "**" {
		segment++
	}
	return segment == len(segments)
}

func matchesPart(segment, part string) bool {
	ok, _ := path.Match(segment, part)
	return ok
}

// mayContain reports whether a path below the directory parts can match the segments.
func mayContain(segments, parts []string) bool {
	for i, part := range parts {
		if i >= len(segments) {
			return false
		}
		if segments[i] == "**" {
			return true
		}
		if !matchesPart(segments[i], part) {
			return false
		}
	}
	return len(segments) > len(parts)
}
