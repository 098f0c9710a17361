package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/sandshell/sandshell/sandbox"
)

// Skills returns the commands of the plugin agentskills as tools: open, scroll_down, search_dir,
// edit and so on. They run in the session, which remembers the open file. Relative paths start at
// the session's directory. If a command of the session is unfinished, a skill does not run, and its
// reply says so. If the box lacks the plugin, the error of a call is agentskills.ErrNotInstalled.
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
			panic(err) // the schema is part of the program
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
				r, err := sh.run(ctx, runArgs{Command: command})
				if r != nil { // the usage is for people at a shell
					r.Text = skillUsage.ReplaceAllString(r.Text, "")
				}
				return r, err
			}})
	}
	return set.withEgress(c)
}

// skillUsage matches what a skill prints about its command line if its arguments are wrong.
var skillUsage = regexp.MustCompile(`(?m)^usage: .*\n\(\w+ --help tells more\)\n`)

// checkSkills returns a function that returns an error if the session lacks the plugin. Without the
// check, another program with the name of a skill could run. Many machines have a program "open".
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

// propertyOrder returns the names of a schema's properties in the order of its text. A model gives
// arguments in that order.
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
				panic(fmt.Sprintf("the schema of a property is %v", token))
			}
		}
	}
}
