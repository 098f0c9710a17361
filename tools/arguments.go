package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sandshell/sandshell/internal/nearest"
)

// A checker checks arguments against a schema. Its errors list all mistakes, so that a model can
// correct them at once. The validator of package jsonschema stops at the first mistake, and
// describes it for the author of the schema.
type checker struct {
	tool       string
	schema     *jsonschema.Schema
	properties map[string]*jsonschema.Resolved
	whole      *jsonschema.Resolved
}

func newChecker(tool string, schema *jsonschema.Schema) (*checker, error) {
	c := &checker{tool: tool, schema: schema, properties: map[string]*jsonschema.Resolved{}}
	var err error
	if c.whole, err = schema.Resolve(nil); err != nil {
		return nil, err
	}
	for name, p := range schema.Properties {
		// A schema can be resolved only once, and p is part of one that is resolved.
		if c.properties[name], err = p.CloneSchemas().Resolve(nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// check returns the arguments in a form that encoding/json can unmarshal. The error lists all
// mistakes.
func (c *checker) check(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if text := bytes.TrimSpace(raw); len(text) > 0 && string(text) != "null" {
		var broken *json.SyntaxError
		if err := json.Unmarshal(text, &given); errors.As(err, &broken) {
			return nil, c.mistakes(ctx, "the arguments have to be one JSON object: "+err.Error())
		} else if err != nil {
			return nil, c.mistakes(ctx, "the arguments have to be one JSON object, not "+
				abbreviate(string(text)))
		}
	}
	var problems []string
	for _, name := range sortedKeys(given) {
		p, ok := c.schema.Properties[name]
		switch {
		case !ok && isClosed(c.schema):
			problems = append(problems, c.unknown(name))
		case !ok:
		case string(given[name]) == "null" && !slices.Contains(c.schema.Required, name):
			delete(given, name) // some models write null to leave an argument out
		default:
			var err error
			if given[name], err = c.checkValue(name, p, given[name]); err != nil {
				problems = append(problems, err.Error())
			}
		}
	}
	for _, name := range c.schema.Required {
		if _, ok := given[name]; !ok {
			problems = append(problems, fmt.Sprintf("the argument %q is missing", name))
		}
	}
	if len(problems) > 0 {
		return nil, c.mistakes(ctx, problems...)
	}
	checked, err := json.Marshal(given)
	if err != nil {
		return nil, c.mistakes(ctx, err.Error())
	}
	return checked, c.checkWhole(ctx, checked)
}

// unknown returns the problem with an argument that the tool does not have.
func (c *checker) unknown(name string) string {
	problem := fmt.Sprintf("there is no argument %q", abbreviate(name))
	if near := nearest.Of(name, sortedKeys(c.schema.Properties)); near != "" {
		problem += fmt.Sprintf(": did you mean %q?", near)
	}
	return problem
}

// checkWhole checks the rules of the schema that concern several arguments at once.
func (c *checker) checkWhole(ctx context.Context, checked json.RawMessage) error {
	var all map[string]any
	if err := json.Unmarshal(checked, &all); err != nil {
		return c.mistakes(ctx, err.Error())
	}
	if err := c.whole.Validate(all); err != nil {
		return c.mistakes(ctx, err.Error())
	}
	return nil
}

// checkValue checks one argument, and returns it in a form that encoding/json can unmarshal.
func (c *checker) checkValue(name string, p *jsonschema.Schema,
	raw json.RawMessage) (json.RawMessage, error) {
	misfit := fmt.Errorf("the argument %q has to be %s, not %s", name, withArticle(wanted(p)),
		abbreviate(string(raw)))
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("the argument %q: %w", name, err)
	}
	if err := c.properties[name].Validate(value); err != nil {
		if value = unquoted(p, value); value == nil || c.properties[name].Validate(value) != nil {
			return nil, misfit
		}
		if raw, err = json.Marshal(value); err != nil {
			return nil, misfit
		}
	}
	// 3.0 is an integer for JSON schema, but encoding/json refuses it for an int.
	if f, ok := value.(float64); ok && allows(p, "integer") {
		if math.Abs(f) >= 1<<53 {
			return nil, misfit
		}
		return fmt.Appendf(nil, "%d", int64(f)), nil
	}
	return raw, nil
}

// unquoted returns the number or boolean that a string holds, if the schema does not allow strings.
// Otherwise it returns nil. Some models quote numbers and booleans.
func unquoted(p *jsonschema.Schema, value any) any {
	text, ok := value.(string)
	if !ok || allows(p, "string") {
		return nil
	}
	if text = strings.TrimSpace(text); text == "True" || text == "False" { // as in Python
		text = strings.ToLower(text)
	}
	if json.Unmarshal([]byte(text), &value) != nil {
		return nil
	}
	switch value.(type) {
	case float64, bool:
		return value
	}
	return nil
}

// allows reports whether a schema names a type.
func allows(p *jsonschema.Schema, kind string) bool {
	return p.Type == kind || slices.Contains(p.Types, kind)
}

// mistakes returns the error for wrong arguments. It lists the problems and the arguments that the
// tool takes.
func (c *checker) mistakes(ctx context.Context, problems ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "wrong arguments for %s:\n", prefixOf(ctx)+c.tool)
	for _, p := range problems {
		b.WriteString("- " + p + "\n")
	}
	names := c.schema.PropertyOrder
	if len(names) != len(c.schema.Properties) {
		names = sortedKeys(c.schema.Properties)
	}
	if len(names) == 0 {
		b.WriteString("It takes no arguments.")
		return errors.New(b.String())
	}
	b.WriteString("It takes:")
	for _, name := range names {
		p := c.schema.Properties[name]
		fmt.Fprintf(&b, "\n- %s (%s", name, wanted(p))
		if slices.Contains(c.schema.Required, name) {
			b.WriteString(", required")
		}
		b.WriteString(")")
		if p.Description != "" {
			b.WriteString(": " + p.Description)
		}
	}
	return errors.New(b.String())
}

// mismatch returns the error for arguments that fit the schema but not the function's type. The
// error of encoding/json names Go types.
func (c *checker) mismatch(ctx context.Context, err error) error {
	problem := err.Error()
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		problem = fmt.Sprintf("the argument %q has a wrong value: %s", wrong.Field, wrong.Value)
	}
	return c.mistakes(ctx, problem)
}

// isClosed reports whether a schema allows no further properties.
func isClosed(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
}

// wanted says in words what a schema allows, without an article: "integer of at least 1".
func wanted(p *jsonschema.Schema) string {
	kind := p.Type
	if kind == "" {
		kind = strings.Join(slices.DeleteFunc(slices.Clone(p.Types), func(t string) bool {
			return t == "null"
		}), " or ")
	}
	switch {
	case len(p.Enum) > 0:
		words := make([]string, len(p.Enum))
		for i, v := range p.Enum {
			words[i] = fmt.Sprint(v)
		}
		return "one of " + strings.Join(words, ", ")
	case p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf("%s from %v to %v", kind, *p.Minimum, *p.Maximum)
	case p.Minimum != nil:
		return fmt.Sprintf("%s of at least %v", kind, *p.Minimum)
	case kind == "":
		return "value that fits the schema"
	}
	return kind
}

// withArticle returns what wanted returns, with "a" or "an" where that belongs.
func withArticle(wanted string) string {
	switch {
	case strings.HasPrefix(wanted, "one of "):
		return wanted
	case strings.ContainsAny(wanted[:1], "aeiou"):
		return "an " + wanted
	}
	return "a " + wanted
}

// abbreviate returns the first 100 bytes of a text of the model, for an error to the model.
func abbreviate(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
