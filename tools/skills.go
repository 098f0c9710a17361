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
// edit and so on. They run in the session. It remembers the open file, and relative paths start at
// its directory. While a command of the session is unfinished, they cannot run, and say so. If the
// box lacks the plugin, the error of a call is agentskills.ErrNotInstalled.
func Skills(s sandbox.Session, c Config) *Set {
	c, err := c.check("Skills: the session", s)
	if err != nil {
		return broken(err)
	}
	sh := newShell(s, c)
	sh.checkPlugin = checkSkills(s, c)
	set := &Set{shells: []sharedShell{{shell: sh}}}
	for _, t := range agentskills.Tools() {
		schema := &jsonschema.Schema{}
		if err := json.Unmarshal(t.Parameters, schema); err != nil {
			panic(err) // the schema is embedded
		}
		schema.PropertyOrder = propertyOrder(t.Parameters)
		check, err := newChecker(t.Name, schema)
		if err != nil {
			panic(err)
		}
		set.tools = append(set.tools, Tool{Name: t.Name, Description: t.Description, Schema: schema,
			call: func(ctx context.Context, args json.RawMessage) (*Reply, error) {
				checked, err := check.check(ctx, args)
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

// checkSkills returns a function that checks whether the session has the plugin. Without the check,
// another program with the name of a command could run: many machines have an "open".
func checkSkills(s sandbox.Session, c Config) func(ctx context.Context) error {
	var installed atomic.Bool
	return func(ctx context.Context) error {
		if installed.Load() {
			return nil
		}
		r, err := s.Execute(ctx, "command -v str_replace", sandbox.Timeout(c.MaxWait))
		switch {
		case err != nil:
			return err
		case r.State != sandbox.Exited || r.ExitCode != 0:
			return programError{agentskills.ErrNotInstalled}
		}
		installed.Store(true)
		return nil
	}
}

// propertyOrder returns the names of a schema's properties in the order of its text. A model fills
// them in in that order.
func propertyOrder(schema json.RawMessage) []string {
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
