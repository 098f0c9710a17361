package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/google/jsonschema-go/jsonschema"
)

// validName matches what the models' providers accept as the name of a tool.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func checkName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("the tool name %q has to be 1 to 64 letters, digits, \"_\" and \"-\"",
			name)
	}
	return nil
}

// Func returns a set with one tool, which calls f. A is a struct whose fields are the tool's
// arguments. The json tag of a field is the argument's name, and the jsonschema tag its
// description. A field with omitempty or omitzero is optional.
//
//	type query struct {
//		Word  string `json:"word" jsonschema:"the word to look up"`
//		Limit int    `json:"limit,omitempty" jsonschema:"the most answers; default: 10"`
//	}
//
// f gets only arguments that fit the schema, and returns text or a *Reply. An error of f becomes
// text for the model, unless it is sandbox.ErrClosed or sandbox.ErrLost, or ctx has ended. f may be
// called from several goroutines at once.
//
// The name is 1 to 64 letters, digits, "_" and "-". If the name, A or f is invalid, New returns an
// error.
func Func[A any, R string | *Reply](name, description string,
	f func(ctx context.Context, args A) (R, error)) *Set {
	if f == nil {
		return broken(fmt.Errorf("Func: the function of the tool %s is nil: give one", name))
	}
	t, err := newTool(name, description, func(ctx context.Context, args A) (*Reply, error) {
		r, err := f(ctx, args)
		if err != nil {
			return nil, err
		}
		switch r := any(r).(type) {
		case *Reply:
			if r == nil {
				return &Reply{}, nil
			}
			return r, nil
		case string:
			return &Reply{Text: r}, nil
		}
		panic("unreachable")
	})
	return &Set{tools: []Tool{t}, err: err}
}

// newTool returns a tool. It calls each change with the tool's schema.
func newTool[A any](name, description string, f func(ctx context.Context, args A) (*Reply, error),
	change ...func(*jsonschema.Schema)) (Tool, error) {
	if err := checkName(name); err != nil {
		return Tool{}, err
	}
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		return Tool{}, fmt.Errorf("the arguments of the tool %s: %w", name, err)
	}
	if schema.Type != "object" {
		return Tool{}, fmt.Errorf("the arguments of the tool %s have to be a struct, not %T", name,
			*new(A))
	}
	for _, c := range change {
		c(schema)
	}
	check, err := newChecker(name, schema)
	if err != nil {
		return Tool{}, fmt.Errorf("the arguments of the tool %s: %w", name, err)
	}
	return Tool{Name: name, Description: description, Schema: schema,
		call: func(ctx context.Context, raw json.RawMessage) (*Reply, error) {
			var args A
			checked, err := check.check(ctx, raw)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(checked, &args); err != nil {
				return nil, check.mismatch(ctx, err)
			}
			return f(ctx, args)
		}}, nil
}

// must returns t, and panics if err is not nil. It is for this package's own tools, whose names and
// arguments are constants.
func must(t Tool, err error) Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// readOnly returns t marked as a tool that changes nothing.
func readOnly(t Tool) Tool {
	t.ReadOnly = true
	return t
}

// describe returns a change, for newTool, that sets the description of an argument. Long
// descriptions do not fit into a struct tag.
func describe(name, description string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Properties[name].Description = description }
}

// atLeast returns a change, for newTool, that sets the least value of integer arguments.
func atLeast(least float64, names ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		for _, name := range names {
			p := s.Properties[name]
			p.Minimum = &least
			if len(p.Types) > 0 { // a pointer's types are "null" and "integer"
				p.Type, p.Types = "integer", nil
			}
		}
	}
}

// atMost returns a change, for newTool, that sets the greatest value of an integer argument.
func atMost(most float64, name string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Properties[name].Maximum = &most }
}

type prefixKey struct{}

// prefixOf returns the prefix of the tool whose call has the context ctx.
func prefixOf(ctx context.Context) string {
	prefix, _ := ctx.Value(prefixKey{}).(string)
	return prefix
}

// toolName returns the name, in backquotes, of another tool in the set of the tool whose call has
// the context ctx.
func toolName(ctx context.Context, tool string) string { return "`" + prefixOf(ctx) + tool + "`" }
