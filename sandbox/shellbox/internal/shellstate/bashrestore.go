package shellstate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
)

// lateVariables are set after all else, because they change what later statements mean.
var lateVariables = []string{"LC_ALL", "IFS", "POSIXLY_CORRECT", "BASH_COMPAT"}

// restoreBash returns the commands that make a shell which is as fresh says what want says. keep
// are variables that stay as they are.
func restoreBash(fresh, want *State, keep []string) string {
	b := &strings.Builder{}
	line := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	line(`\builtin shopt -u expand_aliases;\builtin shopt -s extglob`)
	if entries := want.history(); !slices.Equal(entries, fresh.history()) {
		line(`\builtin history -c`)
		for _, entry := range entries {
			line(`\builtin history -s -- %s`, shellquote.Quote(entry))
		}
	}
	late := restoreVariables(line, fresh, want, keep)
	for _, f := range want.functions {
		if fresh.items["function "+f.name] != want.items["function "+f.name] {
			b.WriteString(f.text)
		}
	}
	for _, part := range []string{"completions", "hashed"} {
		for _, statement := range statements(want.part(part)) {
			line(`\builtin %s`, strings.TrimPrefix(statement, "builtin "))
		}
	}
	if modes := want.part("modes"); isModes(modes) && modes != fresh.part("modes") {
		line(`(\builtin command -p stty %s)`, modes)
	}
	for _, dir := range slices.Backward(want.parts["dir"]) {
		line(`\builtin cd -- %s;\builtin pushd . >/dev/null`, shellquote.Quote(dir))
	}
	line(`\builtin cd -- %s`, shellquote.Quote(want.part("cwd")))
	if !slices.Contains(keep, "OLDPWD") { // cd has set it
		line(`\builtin unset -v OLDPWD`)
		if old := want.items["variable OLDPWD"]; old != "" {
			line(`\builtin %s`, old)
		}
	}
	line(`\builtin set -- %s`, quoteAll(want.parts["arg"]))
	if mask := want.part("umask"); isWord(mask) {
		line(`\builtin umask %s`, mask)
	}
	for _, statement := range statements(want.part("aliases")) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(statement, "alias "),
			"-- "), "=")
		line(`\builtin alias -- %s=%s`, shellquote.Quote(name), value)
	}
	for _, statement := range late {
		line(`\builtin %s`, statement)
	}
	if seconds := want.part("seconds"); isWord(seconds) {
		line(`\builtin declare SECONDS=%s`, seconds)
	}
	if name := want.part("name"); name != fresh.part("name") {
		line(`BASH_ARGV0=%s`, shellquote.Quote(name))
	}
	restoreShopts(line, fresh, want)
	last := ""
	for _, name := range want.disabled() {
		if slices.Contains([]string{"builtin", "trap", "set", "shopt", "ulimit"}, name) {
			last += " " + name
		} else {
			line(`\builtin enable -n %s`, name)
		}
	}
	restoreLimits(line, `\builtin ulimit`, fresh, want)
	b.WriteString(want.part("early"))
	// What set -x shows of these goes nowhere.
	line("\n{")
	if want.shopts[aliases] {
		line(`%s shopt -s %s`, builtinOf(want), aliases)
	}
	restoreOptions(line, fresh, want)
	for _, statement := range statements(want.part("traps")) {
		line(`%s %s`, builtinOf(want), statement)
	}
	if last != "" {
		line(`%s enable -n%s`, builtinOf(want), last)
	}
	line("} 2>/dev/null")
	return b.String()
}

// builtinOf returns the word that calls a builtin, unless its function is called so.
func builtinOf(want *State) string {
	if strings.TrimSpace(want.part("early")) != "" {
		return `\command`
	}
	return `\builtin`
}

// restoreVariables sets the variables that differ, and returns the statements that come late.
func restoreVariables(line func(string, ...any), fresh, want *State,
	keep []string) (late []string) {
	for _, v := range fresh.variables {
		if _, there := want.items["variable "+v.name]; !there && !slices.Contains(keep, v.name) {
			line(`\builtin unset -v %s`, v.name)
		}
	}
	for item, flags := range fresh.items {
		name, own := strings.CutPrefix(item, "attributes of variable ")
		now, there := want.items[item]
		switch {
		case !own || !isName(name):
		case !there:
			line(`\builtin unset -v %s`, name)
		case strings.Contains(now, "x") && !strings.Contains(flags, "x"):
			line(`\builtin export %s`, name)
		}
	}
	for _, v := range want.variables {
		statement, old := v.text, fresh.items["variable "+v.name]
		if slices.Contains(keep, v.name) || v.name == "OLDPWD" {
			continue
		}
		if statement == old && v.name != "HISTTIMEFORMAT" {
			continue
		}
		flags, _ := attributes(statement)
		if was, _ := attributes(old); old != "" && was != flags {
			line(`\builtin unset -v %s`, v.name)
		}
		if slices.Contains(lateVariables, v.name) {
			late = append(late, statement)
			continue
		}
		// Only after the very word declare does bash read an array.
		line("%s", valueFirst(statement))
	}
	if posix := want.items["variable POSIXLY_CORRECT"]; posix != "" {
		if _, name := attributes(posix); name != "" {
			late = append(late, posix)
		}
	}
	return late
}

// aliases is the option of shopt that is set last.
const aliases = "expand_aliases"

// valueFirst returns a declaration in two: the value, and the attributes that change what is
// assigned. The value may be from before the variable had these, and not be a number for instance.
func valueFirst(statement string) string {
	const changing = "iluc"
	flags, name := attributes(statement)
	if !strings.ContainsAny(flags, changing) || strings.Contains(flags, "n") {
		return statement
	}
	first := strings.Map(func(c rune) rune {
		if strings.ContainsRune(changing+"r", c) {
			return -1
		}
		return c
	}, flags)
	if first == "" {
		first = "-"
	}
	return "declare -" + first + strings.TrimPrefix(statement, "declare -"+flags) +
		"\ndeclare -" + flags + " " + name
}

// restoreShopts sets the options of shopt but for aliases. A variable that has been set may have
// changed some.
func restoreShopts(line func(string, ...any), fresh, want *State) {
	var on, off []string
	for option := range fresh.shopts {
		if !want.shopts[option] {
			off = append(off, option)
		}
	}
	for option, set := range want.shopts {
		if set && option != aliases {
			on = append(on, option)
		}
	}
	slices.Sort(on)
	slices.Sort(off)
	for _, option := range off { // one by one: some can only be set when bash starts
		line(`\builtin shopt -u %s`, option)
	}
	for _, option := range on {
		line(`\builtin shopt -s %s`, option)
	}
}

// variableOf are the variables that set an option.
var variableOf = map[string]string{"posix": "variable POSIXLY_CORRECT",
	"ignoreeof": "variable IGNOREEOF"}

// restoreOptions sets the options of set -o, in one command.
func restoreOptions(line func(string, ...any), fresh, want *State) {
	has, had := strings.Split(want.part("shellopts"), ":"), strings.Split(fresh.part("shellopts"),
		":")
	words := ""
	for _, option := range had {
		if option != "" && !slices.Contains(has, option) {
			words += " +o " + option
		}
	}
	for _, option := range has {
		if _, byVariable := want.items[variableOf[option]]; byVariable {
			continue
		}
		if isOption(option) && !slices.Contains(had, option) {
			words += " -o " + option
		}
	}
	if words != "" {
		line(`%s set%s`, builtinOf(want), words)
	}
}

// restoreLimits sets the limits that differ. A soft limit can be above the old hard one, or the old
// soft one above the new hard one.
func restoreLimits(line func(string, ...any), ulimit string, fresh, want *State) {
	for _, letter := range strings.Split("cdefilmnpqrstuvwxRPTkb", "") {
		soft, hard := "limit -"+letter+" (soft)", "limit -"+letter+" (hard)"
		s, h := want.items[soft], want.items[hard]
		if s == fresh.items[soft] && h == fresh.items[hard] || !isWord(s) || !isWord(h) {
			continue
		}
		line("%s -S -%s %s;%s -H -%s %s;%s -S -%s %s", ulimit, letter, s, ulimit, letter, h,
			ulimit, letter, s)
	}
}

// isWord reports whether text is a word that no shell reads as anything else.
func isWord(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"+
		"0123456789_") == ""
}

// isOption is isWord, for a name such as interactive-comments.
func isOption(text string) bool { return isWord(strings.ReplaceAll(text, "-", "_")) }

// isModes reports whether text is what stty -g prints.
func isModes(text string) bool {
	return text != "" && strings.Trim(text, "0123456789abcdefghijklmnopqrstuvwxyz:=") == ""
}

// quoteAll quotes words, with a blank between them.
func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellquote.Quote(word)
	}
	return strings.Join(quoted, " ")
}
