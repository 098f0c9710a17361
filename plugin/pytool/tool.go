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

// Needs is what a tool needs of its box. A Runner keeps a box as long as the Needs stay the same.
type Needs struct {
	// Image is the image of the box that a Runner makes.
	Image string
	// Requirements are lines as in a requirements.txt, such as "requests>=2", a path or a URL, in
	// any order. A relative path starts at the directory in which the box's Runs start. Default:
	// none, and no virtual environment.
	Requirements []string
	// PipArgs are further arguments of "pip install", such as "--no-index" and
	// "--find-links=/wheels".
	PipArgs []string
	// Env holds variables, each "NAME=value", that are added to the box's for each call and for
	// pip. If a name occurs more than once, the last value counts.
	Env []string
}

// A Call holds the arguments and settings of one call. The zero value calls the function without
// arguments.
type Call struct {
	// Args holds the arguments by name: a value that encoding/json encodes as an object, or as
	// null, which means none. Default: none.
	Args any
	// State is the argument for the function's parameter named state: a value that encoding/json
	// encodes. Default: none.
	State any
	// Env holds variables that are added to Needs.Env for this call.
	Env []string
	// Dir is the function's working directory. Default: the directory in which the box's Runs
	// start.
	Dir string
	// Timeout is the longest time that the start of Python and the function may take, without the
	// installation of requirements. Default: no limit.
	Timeout time.Duration
	// Stdout and Stderr get the function's output as it comes. The Result has it too. They may be
	// the same Writer. If Write fails or panics, the function goes on, and Call returns the error
	// at its end. Default: none.
	Stdout, Stderr io.Writer
	// MaxOutput is how many bytes of Stdout, and of Stderr, the Result keeps, half of them from the
	// head and half from the tail. Default: 1 MiB.
	MaxOutput int
}

// A Result is the outcome of a call. Value and State may have 10 MiB in all: more is an error.
type Result struct {
	Value json.RawMessage // the function's return value; nil if it raised or was ended
	// State is Call.State as the function left it; nil if there was none, or if the call failed.
	State         json.RawMessage
	Stdout        string // valid UTF-8, in which U+FFFD replaces other bytes
	StdoutOmitted int64  // bytes cut out of the middle of Stdout
	Stderr        string
	StderrOmitted int64
	Duration      time.Duration // without the installation of requirements
}

const maxOutput = 1 << 20

// encodeRequest validates the call and returns the input for the program in the box.
func (t *Tool) encodeRequest(c Call) ([]byte, error) {
	switch {
	case t.Function == "":
		return nil, errors.New("Tool.Function: it is empty: give the name of a function in Source")
	case c.Timeout < 0:
		return nil, fmt.Errorf("Call.Timeout: %v is negative: 0 stands for no limit", c.Timeout)
	case c.MaxOutput < 0:
		return nil, fmt.Errorf("Call.MaxOutput: %d is negative: 0 stands for %d", c.MaxOutput,
			maxOutput)
	}
	if err := environ.Check("Tool.Env", t.Env); err != nil {
		return nil, err
	}
	if err := environ.Check("Call.Env", c.Env); err != nil {
		return nil, err
	}
	// The object is put together here, because encoding/json would parse large arguments again.
	args, err := marshal("Args", c.Args)
	if err != nil {
		return nil, err
	}
	switch {
	case len(args) == 0, string(args) == "null": // a nil map
		args = []byte("{}")
	case args[0] != '{':
		return nil, fmt.Errorf("Call.Args: %.100s is no JSON object: give arguments by name", args)
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

// marshal returns a field of Call as JSON, and nil for nil.
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
