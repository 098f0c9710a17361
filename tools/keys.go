package tools

import "strings"

// keys maps the names of keys to what a terminal sends for them. The sequences of cursor keys are
// those of a terminal in application mode, as in terminfo. less and programs that use curses know
// only these, and readline knows them too.
var keys = map[string]string{
	"enter": "\n", "none": "", "tab": "\t", "escape": "\x1b", "backspace": "\x7f",
	"delete": "\x1b[3~",
	"up":     "\x1bOA", "down": "\x1bOB", "right": "\x1bOC", "left": "\x1bOD",
	"home": "\x1bOH", "end": "\x1bOF", "page-up": "\x1b[5~", "page-down": "\x1b[6~",
	"ctrl-a": "\x01", "ctrl-c": "\x03", "ctrl-d": "\x04", "ctrl-e": "\x05", "ctrl-k": "\x0b",
	"ctrl-l": "\x0c", "ctrl-o": "\x0f",
	"ctrl-r": "\x12", "ctrl-u": "\x15", "ctrl-w": "\x17", "ctrl-x": "\x18", "ctrl-z": "\x1a",
	"ctrl-backslash": "\x1c",
}

func keyNames() []string { return sortedKeys(keys) }

// keystrokes returns what to type for an answer. "\r\n" becomes one "\n", because on most terminals
// each of the two characters is an Enter, and the second would answer the program's next question.
// For the same reason, a text that ends in a newline gets no further Enter.
func keystrokes(a answerArgs) string {
	text := strings.ReplaceAll(a.Text, "\r\n", "\n")
	ended := strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\r")
	switch {
	case a.Key != "":
		return text + keys[a.Key]
	case ended:
		return text
	}
	return text + keys["enter"]
}
