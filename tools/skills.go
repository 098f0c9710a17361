package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/sandshell/sandshell/sandbox"
)

// Skills returns the commands of the plugin agentskills as tools: open, scroll_down, search_dir,
// edit and so on. They run in the session, which remembers the open file and whose directory
// relative paths start at. So they have to wait for an unfinished command. The box has to have the
// plugin: else the error of a call is agentskills.ErrNotInstalled.
func Skills(s sandbox.Session, opts ...Option) *Set {
	if isNil(s) {
		return broken("Skills: the session is nil")
	}
	sh := newShell(s, opts)
	sh.missing = skillsMissing(s, sh.options)
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

// skillsMissing returns a function that tells whether the session lacks the plugin. Else another
// program of a command's name would run: many machines have an "open".
func skillsMissing(s sandbox.Session, o options) func(ctx context.Context) error {
	var there atomic.Bool
	return func(ctx context.Context) error {
		if there.Load() {
			return nil
		}
		r, err := s.Execute(ctx, "command -v str_replace", sandbox.Timeout(o.yield))
		switch {
		case err != nil:
			return err
		case r.State != sandbox.Exited || r.ExitCode != 0:
			return programError{agentskills.ErrNotInstalled}
		}
		there.Store(true)
		return nil
	}
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
