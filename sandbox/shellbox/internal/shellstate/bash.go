package shellstate

import (
	"regexp"
	"slices"
	"strings"
)

// ownOfBash are the variables that bash sets by itself, and those of the engine. Their values are
// not part of the state, but their attributes are. With checkwinsize, so are LINES and COLUMNS.
var ownOfBash = strings.Fields(`BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS
BASH_COMMAND BASH_EXECUTION_STRING BASH_LINENO BASH_MONOSECONDS BASH_SOURCE BASH_SUBSHELL
BASH_TRAPSIG BASH_VERSINFO BASH_VERSION DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID GROUPS HISTCMD
LINENO PPID PWD RANDOM SECONDS SHELLOPTS SHLVL SRANDOM UID`)

// ofNobody are the variables that every line of the engine changes, or that are not of the state at
// all. POSIXLY_CORRECT is a part by itself.
var ofNobody = strings.Fields(`FUNCNAME PIPESTATUS POSIXLY_CORRECT PS0 PS1 PS2 SANDSHELL_SESSION _`)

var declaration = regexp.MustCompile(`^declare -([-A-Za-z]+) ([A-Za-z_][A-Za-z0-9_]*)(=|$)`)

var posixly = regexp.MustCompile(`(?m)^declare -[-A-Za-z]+ POSIXLY_CORRECT=.*$`)

// attributes returns the attributes and the name of a variable in a statement of declare -p.
func attributes(statement string) (flags, name string) {
	if m := declaration.FindStringSubmatch(statement); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

func (s *State) readBash() {
	s.shopts = s.readShopts()
	s.readVariables()
	s.readFunctions()
	for _, statement := range statements(s.part("aliases")) {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(statement, "alias "),
			"-- "), "=")
		s.items["alias "+name] = statement
	}
	for option := range strings.SplitSeq(s.part("shellopts"), ":") {
		if option != "" {
			s.items["option "+option] = "on"
		}
	}
	for option, on := range s.shopts {
		if on {
			s.items["shopt "+option] = "on"
		}
	}
	s.items["name of the shell ($0)"] = s.part("name")
	for _, statement := range statements(s.part("traps")) {
		s.items["trap "+lastWord(statement)] = statement
	}
	s.limits(func(line string) (letter, value string) {
		if m := limitLine.FindStringSubmatch(line); m != nil {
			return m[1], m[2]
		}
		return "", ""
	})
	s.items["directory stack"] = strings.Join(s.parts["dir"], "\x00")
	s.items["history"] = strings.Join(s.history(), "\x00")
	for _, name := range s.disabled() {
		s.items["disabled builtin "+name] = "disabled"
	}
	for _, statement := range statements(s.part("builtins")) {
		s.items["builtin "+lastWord(statement)] = "there"
	}
	for _, statement := range statements(s.part("completions")) {
		s.items["completion of "+lastWord(statement)] = statement
	}
	for _, statement := range statements(s.part("hashed")) {
		s.items["hashed program "+lastWord(statement)] = statement
	}
}

// history returns the entries of the history. Each comes after a line with its time. With set -o
// history, the shell adds the engine's lines. They are left out: there are more of them each time.
func (s *State) history() []string {
	all := historyTime.Split("\n"+s.part("history"), -1)
	own := s.part("own")
	return slices.DeleteFunc(all[1:], func(entry string) bool {
		return own != "" && strings.Contains(entry, own)
	})
}

var historyTime = regexp.MustCompile(`\n#[0-9]+\n`)

// disabled returns the names of the builtins that are disabled. Traps may have printed other lines.
func (s *State) disabled() (names []string) {
	for line := range strings.Lines(s.part("disabled")) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "enable -n ")
		if ok && !strings.ContainsAny(name, " '\"\\$`;&|<>()") {
			names = append(names, name)
		}
	}
	return names
}

// readShopts returns the options of shopt. BASHOPTS does not have what a variable has changed, such
// as GLOBIGNORE, but where a function has the name builtin, there is nothing else. BASH_COMPAT
// stands for the options compat31 and so on.
func (s *State) readShopts() map[string]bool {
	shopts := map[string]bool{}
	add := func(option string, on bool) {
		if isWord(option) && !strings.HasPrefix(option, "compat") {
			shopts[option] = on
		}
	}
	for line := range strings.Lines(s.part("shopts")) {
		if f := strings.Fields(line); len(f) == 2 && (f[1] == "on" || f[1] == "off") {
			add(f[0], f[1] == "on")
		}
	}
	if _, ok := shopts["extglob"]; ok {
		return shopts
	}
	for _, option := range []string{"extglob", "dotglob", "expand_aliases"} {
		add(option, false)
	}
	for option := range strings.SplitSeq(s.part("bashopts"), ":") {
		add(option, true)
	}
	return shopts
}

// limitLine is a line of ulimit -a, such as "open files                          (-n) 1024".
var limitLine = regexp.MustCompile(`\((?:[^()]*, )?-([A-Za-z])\) +(\S+)$`)

func (s *State) readVariables() {
	own := ownOfBash
	if s.shopts["checkwinsize"] {
		own = append(slices.Clip(own), "LINES", "COLUMNS")
	}
	lcAll := s.part("lc_all")
	for _, statement := range statements(s.part("variables")) {
		flags, name := attributes(statement)
		switch {
		case name == "" || slices.Contains(ofNobody, name):
			continue
		case name == "LC_ALL":
			if statement = lcAll; statement == "" {
				continue
			}
		case slices.Contains(own, name):
			s.items["attributes of variable "+name] = flags
			continue
		}
		s.items["variable "+name] = statement
		s.variables = append(s.variables, named{name, statement})
	}
	// The part "early" begins with how POSIXLY_CORRECT is declared, after what traps print.
	early := s.part("early")
	if at := posixly.FindStringIndex(early); at != nil {
		if posix := early[at[0]:at[1]]; !strings.HasSuffix(posix, `="@unset"`) {
			s.items["variable POSIXLY_CORRECT"] = posix
		}
		s.parts["early"] = []string{strings.TrimPrefix(early[at[1]:], "\n")}
	}
}

func (s *State) readFunctions() {
	for _, part := range s.parts["function"] {
		name, text, _ := strings.Cut(part, "\n")
		if name == "" || text == "" {
			continue
		}
		s.items["function "+name] = text
		// A function may be called declare. The last line may tell the attributes.
		if i := strings.LastIndexByte(text, '\n'); strings.HasPrefix(text[i+1:], "declare -f") {
			text = text[:i+1] + `\builtin ` + text[i+1:]
		}
		s.functions = append(s.functions, named{name, text + "\n"})
	}
	if early := s.part("early"); strings.TrimSpace(early) != "" {
		s.items["function builtin or enable"] = early
	}
}
