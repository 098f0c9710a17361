// Package adk gives agents of Google's Agent Development Kit (google.golang.org/adk) a box as their
// tools ([Tools]). Copy it; the test is an agent with them.
package adk

import (
	"encoding/json"
	"fmt"

	"github.com/sandshell/sandshell/tools"
	"google.golang.org/adk/model"
	"google.golang.org/adk/tool"
	"google.golang.org/genai"
)

// Tools returns the tools of a set as ADK's, for llmagent.Config.
func Tools(set *tools.Set) []tool.Tool {
	all := set.Tools()
	adapted := make([]tool.Tool, len(all))
	for i, t := range all {
		adapted[i] = &function{set, t}
	}
	return adapted
}

// A function is a tool of a set. ADK's own functiontool would check the arguments itself, and tell
// the model less of what is wrong with them; what ADK calls of a tool beside tool.Tool's methods
// are Declaration, ProcessRequest and Run.
type function struct {
	set  *tools.Set
	tool tools.Tool
}

func (f *function) Name() string        { return f.tool.Name }
func (f *function) Description() string { return f.tool.Description }
func (f *function) IsLongRunning() bool { return false }

// Declaration is what the model is told.
func (f *function) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: f.tool.Name, Description: f.tool.Description,
		ParametersJsonSchema: f.tool.Schema}
}

// ProcessRequest puts the tool into a request for the model. All functions have to be in one
// genai.Tool.
func (f *function) ProcessRequest(_ tool.Context, r *model.LLMRequest) error {
	if _, there := r.Tools[f.tool.Name]; there {
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

// Run does a call of the model's. ADK makes a reply of an error, too, and goes on: the model is
// told that the box is lost, at each call. A program that is to end then cancels the run's ctx in
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
		return map[string]any{"error": reply.Text}, nil // the two keys that Gemini knows
	}
	return map[string]any{"output": reply.Text}, nil
}
