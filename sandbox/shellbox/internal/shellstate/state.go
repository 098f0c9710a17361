// Package shellstate reads the state of a session's shell as text, and makes another shell of the
// same kind have it: directory, variables, functions, aliases, options, traps, umask, limits,
// positional parameters, terminal modes.
//
// The shell itself prints its state, in a subshell that changes nothing of it, onto a FIFO. The
// state is what programs of the sandbox say: it is bounded, and nothing of it is executed here.
//
// What a shell was made is read back and compared, so the caller learns what is missing. Some
// things no text can have: programs, descriptors, and the functions of dash and ash. They are
// named. The names of functions are found in the shell's memory: see functions.sh.
package shellstate

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A State is what a shell has said of itself.
type State struct {
	said []byte // with its marks
	mark string

	bash  bool
	parts map[string][]string // in the order in which the shell has printed them
	items map[string]string   // what makes up the state, by names for people

	// Of bash: variables, as statements that declare them, in the order of their names, and
	// functions. Of sh: assignments.
	variables, functions []named
	exported, readonly   map[string]bool // of sh
	shopts               map[string]bool // of bash: whether they are on
	files                map[string]file // by descriptor
}

// A file is what a descriptor is.
type file struct {
	id string // its mount and inode, as /proc/PID/fdinfo names them, with ":" between
	to string // as /proc/PID/fd names it; "tty": the shell's terminal
}

// A named is the text that makes a variable or a function.
type named struct{ name, text string }

// Max is how many bytes the state of a shell may have: all of its variables and functions.
const Max = 64 << 20

// maxLines bounds the memory for what a state is made of: the shortest statement is a line.
const maxLines = 1 << 20

var errCut = errors.New("the shell has not told all of its state: a program that it needs for " +
	"that was killed, or it has no memory, processes or descriptors left")

// newMark returns the text that begins the names of the parts. The shell knows it only while it
// prints them.
func newMark() string { return "@" + rand.Text() + "." }

// parse reads what a shell has printed. Each part begins a line with the mark, a name, and a blank
// or the end of the line. Its value goes up to the end of the line before the next mark.
func parse(said []byte, mark string) (*State, error) {
	switch {
	case bytes.IndexByte(said, 0) >= 0:
		return nil, errors.New("the shell's state holds a NUL byte, which no shell prints")
	case bytes.Count(said, []byte("\n")) > maxLines:
		return nil, fmt.Errorf("the shell's state has more than %d lines", maxLines)
	}
	s := &State{said: said, mark: mark, parts: map[string][]string{}, items: map[string]string{}}
	for i, part := range bytes.Split(append([]byte("\n"), said...), []byte("\n"+mark)) {
		if i == 0 {
			continue // what a trap has printed before
		}
		end := bytes.IndexAny(part, " \n")
		if end < 0 {
			end = len(part)
		}
		name, value := string(part[:end]), string(part[min(end+1, len(part)):])
		s.parts[name] = append(s.parts[name], value)
	}
	_, s.bash = s.parts["shellopts"]
	last := "traps"
	if s.bash {
		last = "end"
	}
	if _, whole := s.parts[last]; !whole {
		return nil, errCut
	}
	s.common()
	if s.bash {
		s.readBash()
	} else {
		s.readSh()
	}
	return s, nil
}

// Encode returns the state as bytes, for Decode. They hold all values of variables.
func (s *State) Encode() []byte { return append([]byte(s.mark+"\n"), s.said...) }

// Decode returns the state that Encode has made bytes of.
func Decode(encoded []byte) (*State, error) {
	mark, said, ok := bytes.Cut(encoded, []byte("\n"))
	if !ok || len(mark) == 0 || len(said) > Max+2*len(mark)+2*maxReads {
		return nil, errors.New("this is no state of a shell")
	}
	return parse(said, string(mark))
}

// maxReads bounds what names the file on which commands come.
const maxReads = 8 << 10

// part returns the value of a part that comes once.
func (s *State) part(name string) string {
	if values := s.parts[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// common reads what all shells print alike.
func (s *State) common() {
	for _, name := range []string{"umask", "modes"} {
		s.items[itemNames[name]] = s.part(name)
	}
	s.items["directory"] = s.part("cwd")
	for i, arg := range s.parts["arg"] {
		s.items[fmt.Sprintf("positional parameter %d", i+1)] = arg
	}
	// the fields after the program's name, which may hold anything: state is the first
	terminal, stat := "/dev/tty", s.part("stat")
	if f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(f) > 16 {
		s.items["priority (nice)"] = f[16]
		tty, _ := strconv.Atoi(f[4])
		terminal = "/dev/pts/" + strconv.Itoa(tty&0xff|tty>>12&0xfff00)
	}
	for line := range strings.Lines(s.part("status")) {
		if cpus, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			s.items["processors that it may use"] = strings.TrimSpace(cpus)
		}
	}
	s.files = map[string]file{}
	last := ""
	for line := range strings.Lines(s.part("files")) {
		line = strings.TrimSuffix(line, "\n")
		if f := strings.SplitN(line, " ", 3); len(f) == 3 && isNumber(f[0]) {
			last = f[0]
			s.files[last] = file{f[1], f[2]}
		} else if last != "" { // the name of the file goes on
			s.files[last] = file{s.files[last].id, s.files[last].to + "\n" + line}
		}
	}
	s.dropEngines(terminal)
}

// dropEngines removes the descriptors of the engine: that on which commands come, and descriptor 0,
// which is the terminal during each command. It also finds the terminal by its other names.
func (s *State) dropEngines(terminal string) {
	reads := s.part("reads")
	delete(s.files, "0")
	for fd, f := range s.files {
		switch {
		case reads != "" && (f.to == reads || f.id == reads):
			delete(s.files, fd)
		case f.to == terminal || f.to == "/dev/tty":
			s.files[fd] = file{f.id, "tty"}
		}
	}
}

// isNumber reports whether text has digits only.
func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

var itemNames = map[string]string{"umask": "umask", "modes": "terminal modes"}

// limits adds the limits that the parts soft and hard have.
func (s *State) limits(letterOf func(line string) (letter, value string)) {
	for _, kind := range []string{"soft", "hard"} {
		for line := range strings.Lines(s.part(kind)) {
			letter, value := letterOf(strings.TrimSuffix(line, "\n"))
			if letter != "" && value != "" {
				s.items["limit -"+letter+" ("+kind+")"] = value
			}
		}
	}
}

// statements splits text at the ends of lines that are not in quotes.
func statements(text string) (all []string) {
	begin, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'':
			i++
		case quote == '$' && c == '\'', quote != 0 && quote != '$' && c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' && i > 0 && text[i-1] == '$':
			quote = '$' // $'…', in which \' is no end
		case c == '\'' || c == '"':
			quote = c
		case c == '\n':
			all = append(all, text[begin:i])
			begin = i + 1
		}
	}
	if begin < len(text) {
		all = append(all, text[begin:])
	}
	return all
}

// lastWord returns the last word of a statement that ends with a plain one.
func lastWord(statement string) string {
	return statement[strings.LastIndexByte(statement, ' ')+1:]
}

// isName reports whether text can be a variable's name.
func isName(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') &&
			(i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}
