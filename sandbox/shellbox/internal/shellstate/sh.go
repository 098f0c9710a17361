package shellstate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
)

// ownOfSh are the variables that a shell sets by itself, and those of the engine.
var ownOfSh = strings.Fields(`EPOCHREALTIME EPOCHSECONDS FUNCNAME LINENO PPID PS1 PS2 PWD RANDOM
SANDSHELL_SESSION SECONDS _`)

// ofEngine matches the variables of the engine's lines, and those of sh1.sh and sh2.sh.
var ofEngine = regexp.MustCompile(`^(__sandshell_.*|_[0-9a-f]{12})$`)

// probe is the function that is found if the shell's memory can be searched for functions.
const probe = "__sandshell_probe"

func (s *State) readSh() {
	s.exported, s.readonly = s.names("exported"), s.names("readonly")
	for _, statement := range statements(s.part("variables")) {
		name, value, ok := strings.Cut(statement, "=")
		if !ok || !isName(name) {
			continue
		}
		if s.attributesOf(name); slices.Contains(ownOfSh, name) || ofEngine.MatchString(name) {
			continue
		}
		s.items["variable "+name] = value
		s.variables = append(s.variables, named{name, value})
	}
	for _, names := range []map[string]bool{s.exported, s.readonly} {
		for name := range names { // those that have no value too
			s.attributesOf(name)
		}
	}
	for _, statement := range statements(s.part("aliases")) {
		name, _, _ := strings.Cut(strings.TrimPrefix(statement, "alias "), "=")
		s.items["alias "+name] = statement
	}
	for line := range strings.Lines(s.part("options")) {
		if option, on := strings.CutPrefix(strings.TrimSpace(line), "set -o "); on {
			s.items["option "+option] = "on"
		}
	}
	for _, statement := range statements(s.part("traps")) {
		s.items["trap "+lastWord(statement)] = statement
	}
	s.limits(func(line string) (letter, value string) {
		letter, value, _ = strings.Cut(line, " ")
		return letter, value
	})
}

// names returns the names that a part tells, such as "export X='1'".
func (s *State) names(part string) map[string]bool {
	names := map[string]bool{}
	for _, statement := range statements(s.part(part)) {
		_, rest, _ := strings.Cut(statement, " ")
		if name, _, _ := strings.Cut(rest, "="); isName(name) {
			names[name] = true
		}
	}
	return names
}

func (s *State) attributesOf(name string) {
	if ofEngine.MatchString(name) {
		return
	}
	flags := ""
	if s.exported[name] {
		flags += "x"
	}
	if s.readonly[name] {
		flags += "r"
	}
	if flags != "" {
		s.items["attributes of variable "+name] = flags
	}
}

// lostFunctions returns the names of the functions of a shell that cannot print them. searched
// reports whether the shell's memory could be searched.
func (s *State) lostFunctions() (names []string, searched bool) {
	for line := range strings.Lines(s.part("command") + "\n" + s.part("functions")) {
		name, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case !isName(name) || what != "is a function" && what != "is a shell function":
		case name == probe:
			searched = true
		default:
			names = append(names, name)
		}
	}
	return names, searched || s.bash
}

// restoreSh returns the commands that make a shell which is as fresh says what want says. keep are
// variables that stay as they are. Where an assignment fails, such a shell drops the rest.
func restoreSh(fresh, want *State, keep []string) string {
	b := &strings.Builder{}
	line := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	line(`\unalias -a`)
	gone := map[string]bool{}
	for _, v := range fresh.variables {
		_, there := want.items["variable "+v.name]
		if slices.Contains(keep, v.name) ||
			there && (want.exported[v.name] || !fresh.exported[v.name]) {
			continue
		}
		line(`\unset -v %s`, v.name)
		gone[v.name] = true
	}
	ifs := ""
	for _, v := range want.variables {
		value, same := fresh.items["variable "+v.name]
		switch {
		case slices.Contains(keep, v.name) || v.name == "OLDPWD":
		case v.name == "IFS":
			ifs = v.text
		case !same || value != v.text || gone[v.name]:
			line("%s=%s", v.name, v.text)
		}
	}
	for name := range want.exported {
		if !fresh.exported[name] || gone[name] {
			line(`\export %s`, name)
		}
	}
	if modes := want.part("modes"); isModes(modes) && modes != fresh.part("modes") {
		line(`(\command -p stty %s)`, modes)
	}
	line(`\command cd -- %s`, shellquote.Quote(want.part("cwd")))
	if !slices.Contains(keep, "OLDPWD") { // cd has set it
		line(`\unset -v OLDPWD`)
		if old, ok := want.items["variable OLDPWD"]; ok {
			line("OLDPWD=%s", old)
		}
		if want.exported["OLDPWD"] {
			line(`\export OLDPWD`)
		}
	}
	line(`\set -- %s`, quoteAll(want.parts["arg"]))
	if mask := want.part("umask"); isWord(mask) {
		line(`\command umask %s`, mask)
	}
	for _, statement := range statements(want.part("aliases")) {
		name, value, _ := strings.Cut(strings.TrimPrefix(statement, "alias "), "=")
		line(`\alias %s=%s`, shellquote.Quote(name), value)
	}
	restoreLimits(line, `\command ulimit`, fresh, want)
	if ifs != "" && ifs != fresh.items["variable IFS"] {
		line("IFS=%s", ifs)
	}
	for name := range want.readonly {
		if !fresh.readonly[name] {
			line(`\readonly %s`, name)
		}
	}
	// What set -x shows of these goes nowhere.
	words := ""
	for line := range strings.Lines(want.part("options")) {
		line = strings.TrimSpace(line)
		option, ok := strings.CutPrefix(line, "set ")
		if ok && isWord(option[min(3, len(option)):]) &&
			!strings.Contains(fresh.part("options")+"\n", line+"\n") {
			words += " " + option
		}
	}
	line(`\eval %s 2>/dev/null`, shellquote.Quote(
		strings.Join(trapsOf(want), "\n")+"\n\\set"+words+"\n"))
	return b.String()
}

// trapsOf returns the commands that set the traps.
func trapsOf(want *State) (traps []string) {
	for _, statement := range statements(want.part("traps")) {
		if strings.HasPrefix(statement, "trap ") {
			traps = append(traps, `\`+statement)
		}
	}
	return traps
}
