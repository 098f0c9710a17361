package tools

import (
	"context"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/moby/patternmatcher"
)

// ignoreName is the name of the files that say what git ignores.
const ignoreName = ".gitignore"

// maxIgnore is how many bytes of an ignoreName are heeded at most.
const maxIgnore = 64 << 10

// An ignoreRule is a line of a .gitignore.
type ignoreRule struct {
	pattern *patternmatcher.PatternMatcher
	dirOnly bool // it is for directories only
	keeps   bool // what fits is not ignored
}

// ignoreRules are the rules of one .gitignore for a walk of a directory tree.
type ignoreRules struct {
	rules []ignoreRule
	above string // the path from the .gitignore's directory to the walk's, if that is below it
	below int    // how long the name of the .gitignore's directory is in the walk, with its slash
}

// name returns the name that an entry of the walk has for the rules.
func (r *ignoreRules) name(entry string) string { return path.Join(r.above, entry[r.below:]) }

// isIgnored reports whether git ignores an entry of a walk, if it does not ignore the directory
// that the entry is in. The last rule that fits counts, in the last of the files.
func isIgnored(all []ignoreRules, entry string, isDir bool) bool {
	for i := len(all) - 1; i >= 0; i-- {
		name := all[i].name(entry)
		for j := len(all[i].rules) - 1; j >= 0; j-- {
			rule := &all[i].rules[j]
			if rule.dirOnly && !isDir {
				continue
			}
			// The function that replaces this one takes a name for matched when a directory above
			// it is. The walk has judged those by all rules; this is about the name alone.
			//lint:ignore SA1019 right for a matcher with one pattern
			fits, err := rule.pattern.MatchesUsingParentResult(name, false)
			if err == nil && fits {
				return !rule.keeps
			}
		}
	}
	return false
}

// parseIgnore returns the rules of a .gitignore's text. As git does, it passes over patterns that
// are not well formed.
func parseIgnore(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(strings.TrimPrefix(text, string(markUTF8))) {
		line = strings.TrimRight(line, "\r\n")
		if text := strings.TrimRight(line, " "); !strings.HasSuffix(text, `\`) {
			line = text
		} else if text != line { // patternmatcher would take the escaped space away
			line = text[:len(text)-1] + "[ ]"
		}
		if strings.HasPrefix(line, "#") || !utf8.ValidString(line) ||
			strings.ContainsAny(line, "\x00\ufeff") { // patternmatcher would log them
			continue
		}
		var r ignoreRule
		line, r.keeps = strings.CutPrefix(line, "!")
		line, r.dirOnly = strings.CutSuffix(line, "/")
		if line == "" {
			continue
		}
		pattern, err := patternmatcher.New([]string{dockerPattern(line)})
		if err == nil && len(pattern.Patterns()) > 0 {
			r.pattern = pattern
			rules = append(rules, r)
		}
	}
	return rules
}

// dockerPattern returns the pattern of a .dockerignore that fits what a pattern of a .gitignore
// fits. Package patternmatcher has those patterns: they begin at the root, ** is no * beside other
// characters, and a set of characters is negated by ^ only.
func dockerPattern(line string) string {
	anywhere := !strings.Contains(line, "/")
	segments := strings.Split(strings.TrimPrefix(line, "/"), "/")
	for i, s := range segments {
		if s == "**" {
			continue
		}
		for strings.Contains(s, "**") {
			s = strings.ReplaceAll(s, "**", "*")
		}
		segments[i] = strings.ReplaceAll(s, "[!", "[^")
	}
	pattern := strings.Join(segments, "/")
	if anywhere {
		return "**/" + pattern
	}
	if strings.HasPrefix(pattern, "!") { // it begins with /!, which patternmatcher would negate
		return `\` + pattern
	}
	return pattern
}

// readIgnore returns the rules of the .gitignore of a directory. If it cannot be read, there are
// none.
func (t *files) readIgnore(ctx context.Context, dir string) []ignoreRule {
	data, err := t.files.ReadFile(ctx, dir+"/"+ignoreName, maxIgnore)
	if err != nil {
		return nil
	}
	return parseIgnore(string(data))
}

// rulesAbove returns the rules for a directory of the directories above it, as far as its path
// names them. They begin at the directory that has .git or, if none has, where the path begins. If
// the rules ignore the directory itself, they do not count: the model has named it.
func (t *files) rulesAbove(ctx context.Context, dir string) []ignoreRules {
	dir = path.Clean(dir)
	first, _, _ := strings.Cut(dir, "/")
	if dir == "." || dir == "/" || first == ".." || first == "~" {
		return nil
	}
	at, begin := dir, ""
	for begin == "" {
		if _, err := t.files.Lstat(ctx, at+"/.git"); err == nil {
			begin = at
		} else if parent := path.Dir(at); parent != "/" && parent != at {
			at = parent
		} else if parent == "." || at == "." {
			begin = "."
		} else {
			return nil // no repository
		}
	}
	var all []ignoreRules
	rest := dir
	if begin != "." {
		rest = strings.TrimPrefix(strings.TrimPrefix(dir, begin), "/")
	}
	for below := ""; rest != ""; {
		if rules := t.readIgnore(ctx, path.Join(begin, below)); rules != nil {
			all = append(all, ignoreRules{rules: rules, above: rest})
		}
		var next string
		next, rest, _ = strings.Cut(rest, "/")
		below = path.Join(below, next)
		// What is left of the rules' path to the walk is not in the way to this directory.
		for i := range all {
			way := strings.TrimSuffix(strings.TrimSuffix(all[i].above, rest), "/")
			one := all[i]
			one.above = way
			if isIgnored([]ignoreRules{one}, "", true) {
				return nil
			}
		}
	}
	return all
}
