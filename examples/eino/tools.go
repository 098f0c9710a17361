// Package eino gives a box to agents of github.com/cloudwego/eino. [Tools] returns the tools of
// package tools as eino's. [Backend] is a backend for eino's own tools for files and commands. Copy
// the package. Its test has an agent with each.
package eino

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"
	"github.com/sandshell/sandshell/tools"
)

// Tools returns the tools of a set as tools of eino.
func Tools(set *tools.Set) []tool.BaseTool {
	all := set.Tools()
	adapted := make([]tool.BaseTool, len(all))
	for i, t := range all {
		adapted[i] = &invokable{set: set, tool: t}
	}
	return adapted
}

// An invokable is a tool of a set, as a tool of eino.
type invokable struct {
	set  *tools.Set
	tool tools.Tool
}

var _ tool.InvokableTool = (*invokable)(nil)

// Info implements tool.BaseTool.
func (i *invokable) Info(context.Context) (*schema.ToolInfo, error) {
	raw, err := json.Marshal(i.tool.Schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", i.tool.Name, err)
	}
	parameters := &jsonschema.Schema{}
	if err := json.Unmarshal(raw, parameters); err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", i.tool.Name, err)
	}
	return &schema.ToolInfo{Name: i.tool.Name, Desc: i.tool.Description,
		ParamsOneOf: schema.NewParamsOneOfByJSONSchema(parameters)}, nil
}

// InvokableRun implements tool.InvokableTool. An error means that the box is gone, or that ctx has
// ended. It ends the agent's run.
func (i *invokable) InvokableRun(ctx context.Context, arguments string,
	_ ...tool.Option) (string, error) {
	return i.set.Call(ctx, i.tool.Name, json.RawMessage(arguments))
}
