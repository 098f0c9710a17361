package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/sandshell/sandshell/sandbox"
)

// Skills returns the commands of the plugin agentskills as tools: open, scroll_down, search_dir, edit and so on. They run in the session, which remembers the
// open file and whose directory relative paths start at; so they have to wait for an unfinished command. The box has to have the plugin.
func Skills(s sandbox.Session, opts ...Option) *Set {
	if isNil(s) {
		return broken("Skills: the session is nil")
	}
	sh := newShell(s, opts)
	set := &Set{shells: []sharedShell{{shell: sh}}}
	for _, t := range agentskills.Tools() {
		schema := &jsonschema.Schema{}
		if err := json.Unmarshal(t.Parameters, schema); err != nil {
			panic(err) // embedded, as tests see
		}
		schema.PropertyOrder = order(t.Parameters)
		check, err := newChecker(t.Name, schema)
		if err != nil {
			panic(err)
		}
		set.tools = append(set.tools, Tool{Name: t.Name, Description: t.Description, Schema: schema,
			call: func(ctx context.Context, args json.RawMessage) (*Reply, error) {
				checked, err := check.arguments(ctx, args)
				if err != nil {
					return nil, err
				}
				command, err := t.Command(checked)
				if err != nil {
					return nil, err
				}
				return sh.run(ctx, runArgs{Command: command})
			}})
	}
	return set
}

// order returns the names of a schema's properties as they come: a model fills them in so.
func order(schema json.RawMessage) []string {
	var s struct{ Properties json.RawMessage }
	if err := json.Unmarshal(schema, &s); err != nil {
		panic(err)
	}
	var names []string
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return names
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if depth == 1 {
				names = append(names, token)
			}
		default:
			if depth == 1 {
				panic(fmt.Sprintf("a property is %v", token))
			}
		}
	}
}
