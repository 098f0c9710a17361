// Package adk gives a box to agents of Google's Agent Development Kit, google.golang.org/adk.
// [Tools] returns the tools of package tools as ADK's. Copy the package. Its test has an agent.
package adk

import (
	"encoding/json"
	"fmt"

	"github.com/sandshell/sandshell/tools"
	"google.golang.org/adk/model"
	"google.golang.org/adk/tool"
	"google.golang.org/genai"
)

// Tools returns the tools of a set as tools of ADK, for llmagent.Config.
func Tools(set *tools.Set) []tool.Tool {
	all := set.Tools()
	adapted := make([]tool.Tool, len(all))
	for i, t := range all {
		adapted[i] = &function{set, t}
	}
	return adapted
}

// A function is a tool of a set, as a tool of ADK. ADK's own functiontool would check the arguments
// itself, and tell the model less about mistakes in them. Besides the methods of tool.Tool, ADK
// calls Declaration, ProcessRequest and Run.
type function struct {
	set  *tools.Set
	tool tools.Tool
}

func (f *function) Name() string        { return f.tool.Name }
func (f *function) Description() string { return f.tool.Description }
func (f *function) IsLongRunning() bool { return false }

// Declaration describes the tool to the model.
func (f *function) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: f.tool.Name, Description: f.tool.Description,
		ParametersJsonSchema: f.tool.Schema}
}

// ProcessRequest adds the tool to a request for the model. All functions must be in one
// genai.Tool.
func (f *function) ProcessRequest(_ tool.Context, r *model.LLMRequest) error {
	if _, ok := r.Tools[f.tool.Name]; ok {
		return fmt.Errorf("two tools are called %q: give the set a Prefix", f.tool.Name)
	}
	if r.Tools == nil {
		r.Tools = map[string]any{}
	}
	r.Tools[f.tool.Name] = f
	if r.Config == nil {
		r.Config = &genai.GenerateContentConfig{}
	}
	for _, t := range r.Config.Tools {
		if t != nil && t.FunctionDeclarations != nil {
			t.FunctionDeclarations = append(t.FunctionDeclarations, f.Declaration())
			return nil
		}
	}
	r.Config.Tools = append(r.Config.Tools, &genai.Tool{
		FunctionDeclarations: []*genai.FunctionDeclaration{f.Declaration()}})
	return nil
}

// Run makes a call of the model. If Run returns an error, such as that the box is lost, ADK makes a
// reply of it and goes on. To end the agent's run instead, cancel its ctx in
// llmagent.Config.OnToolErrorCallbacks.
func (f *function) Run(ctx tool.Context, arguments any) (map[string]any, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments of %s: %w", f.tool.Name, err)
	}
	reply, err := f.set.Do(ctx, f.tool.Name, raw)
	switch {
	case err != nil:
		return nil, err
	case reply.Failed:
		return map[string]any{"error": reply.Text}, nil // Gemini knows the keys error and output
	}
	return map[string]any{"output": reply.Text}, nil
}
