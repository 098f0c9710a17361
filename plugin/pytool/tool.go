package pytool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sandshell/sandshell/internal/environ"
)

// A Tool is a Python function.
type Tool struct {
	// Source is the text of a module that defines the function.
	Source string
	// Function is the function's name.
	Function string
	Needs
}

// Needs say what a tool needs of its box. A Runner keeps a box as long as the Needs stay the same.
type Needs struct {
	// Image is the image of the box. Only Config.New uses it.
	Image string
	// Requirements are lines as in a requirements.txt: "requests>=2", a path, a URL, in any order.
	// A relative path starts at the working directory of the box's Runs. Default: none, and no
	// virtual environment.
	Requirements []string
	// PipArgs are added to "pip install", such as "--no-index" and "--find-links=/wheels".
	PipArgs []string
	// Env is the environment of each call, and of pip, beside the box's: "NAME=value" each. Of
	// several of a name the last counts.
	Env []string
}

// A Call holds the arguments and settings of one call. The zero value calls the function without
// arguments.
type Call struct {
	// Args are the arguments by name: any value that encoding/json makes a JSON object of. A
	// json.RawMessage is used as it is. Default, and null: none.
	Args any
	// State is passed to the function's parameter named state: any value that encoding/json takes.
	// Default: none.
	State any
	// Env is added to Config.Env, for this call.
	Env []string
	// Dir is the function's working directory. Default: the box's.
	Dir string
	// Timeout bounds the start of Python and the function, but not the installation of
	// requirements. Default: no limit.
	Timeout time.Duration
	// Stdout and Stderr get the function's output as it comes; the Result has it too. One Writer
	// may be both. An error of Write does not stop the function; Call returns it in the end.
	// Default: none.
	Stdout, Stderr io.Writer
	// MaxOutput is how many bytes of Stdout, and of Stderr, the Result holds: half of them from the
	// head, half from the tail. Default: 1 MiB.
	MaxOutput int
}

// A Result is the outcome of a call. Value and State may have 10 MiB in all: more is an error.
type Result struct {
	Value json.RawMessage // the function's return value; nil if it raised or was ended
	// Call.State as the function left it; nil if there was none, or the call failed
	State         json.RawMessage
	Stdout        string // valid UTF-8: U+FFFD stands for other bytes
	StdoutOmitted int64  // bytes cut out of the middle of Stdout
	Stderr        string
	StderrOmitted int64
	Duration      time.Duration // without the installation of requirements
}

const maxOutput = 1 << 20

// request returns the input of the program in the box.
func (t *Tool) request(c Call) ([]byte, error) {
	switch {
	case t.Function == "":
		return nil, errors.New("Tool.Function is empty")
	case c.Timeout < 0:
		return nil, fmt.Errorf("a Timeout of %v", c.Timeout)
	case c.MaxOutput < 0:
		return nil, fmt.Errorf("a MaxOutput of %d", c.MaxOutput)
	}
	if err := environ.Check(slices.Concat(t.Env, c.Env)); err != nil {
		return nil, err
	}
	// By hand: encoding/json would look through large arguments once more.
	args, err := marshal("Args", c.Args)
	if err != nil {
		return nil, err
	}
	switch {
	case len(args) == 0, string(args) == "null": // a nil map
		args = []byte("{}")
	case args[0] != '{':
		return nil, fmt.Errorf("Call.Args are %.100s: want a JSON object of arguments by name",
			args)
	}
	state, err := marshal("State", c.State)
	if err != nil {
		return nil, err
	}
	if state != nil {
		state = slices.Concat([]byte(`,"state":`), state)
	}
	tool, err := json.Marshal(map[string]string{"source": t.Source, "function": t.Function})
	if err != nil {
		return nil, err
	}
	return slices.Concat(tool[:len(tool)-1], []byte(`,"args":`), args, state, []byte("}")), nil
}

// marshal returns a field of Call as JSON, without space around it; nil for nil.
func marshal(field string, v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("marshal Call.%s: %w", field, err)
	}
	return text, nil
}
