package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/google/jsonschema-go/jsonschema"
)

// validName is what the models' providers take as the name of a tool.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func checkName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("the tool name %q has to be up to 64 letters, digits, \"_\" and \"-\"",
			name)
	}
	return nil
}

// Func makes a tool out of a function. A is a struct: its fields are the arguments, named by their
// json tags and described by their jsonschema tags; a field with omitempty or omitzero may be left
// out.
//
//	type query struct {
//		Word  string `json:"word" jsonschema:"the word to look up"`
//		Limit int    `json:"limit,omitempty" jsonschema:"the most answers; default: 10"`
//	}
//
// f is only called with arguments that fit. It returns text, or a *Reply. An error of f is told the
// model, as text, unless it is sandbox.ErrClosed or sandbox.ErrLost or ctx has ended. f may be
// called from several goroutines at once.
//
// The name has up to 64 letters, digits, "_" and "-". Where name or A will not do, New says so.
func Func[A any, R string | *Reply](name, description string,
	f func(ctx context.Context, args A) (R, error)) *Set {
	if f == nil {
		return broken("the function of the tool %s is nil", name)
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

// newTool is Func for one tool; change may change its schema.
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
			checked, err := check.arguments(ctx, raw)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(checked, &args); err != nil {
				return nil, check.unfit(ctx, err)
			}
			return f(ctx, args)
		}}, nil
}

// must is for this package's own tools, whose names and arguments are constants that tests see.
func must(t Tool, err error) Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// readOnly marks a tool that changes nothing.
func readOnly(t Tool) Tool {
	t.ReadOnly = true
	return t
}

// atLeast sets the least value of integers among the arguments.
func atLeast(least float64, names ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		for _, name := range names {
			p := s.Properties[name]
			p.Minimum = &least
			if len(p.Types) > 0 { // a pointer's: what is left out is not null to a model
				p.Type, p.Types = "integer", nil
			}
		}
	}
}

type prefixKey struct{}

// prefixOf returns the prefix of the tool that ctx is a call of.
func prefixOf(ctx context.Context) string {
	prefix, _ := ctx.Value(prefixKey{}).(string)
	return prefix
}

// named returns what a tool of the called one's set is called.
func named(ctx context.Context, tool string) string { return "`" + prefixOf(ctx) + tool + "`" }
