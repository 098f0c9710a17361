package adk

import (
	"context"
	"encoding/json"
	"iter"
	"testing"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/genai"
)

// A step is a call that the scripted model makes. The value of key in the reply has to contain
// says.
type step struct{ tool, arguments, key, says string }

// A script is a model that makes the calls of its steps in turn, and checks the replies.
type script struct {
	t     *testing.T
	steps []step
	done  int
}

func (s *script) Name() string { return "script" }

func (s *script) GenerateContent(_ context.Context, r *model.LLMRequest,
	_ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: s.next(r)}, nil)
	}
}

func (s *script) next(r *model.LLMRequest) *genai.Content {
	require.Len(s.t, r.Config.Tools, 1)
	for _, f := range r.Config.Tools[0].FunctionDeclarations {
		schema, err := json.Marshal(f.ParametersJsonSchema)
		require.NoError(s.t, err)
		require.Contains(s.t, string(schema), `"type":"object"`, f.Name)
		require.NotEmpty(s.t, f.Description, f.Name)
	}
	if s.done > 0 {
		before := s.steps[s.done-1]
		parts := r.Contents[len(r.Contents)-1].Parts
		require.Len(s.t, parts, 1)
		require.Contains(s.t, parts[0].FunctionResponse.Response[before.key], before.says,
			before.arguments)
	}
	if s.done == len(s.steps) {
		return genai.NewContentFromText("It is done.", genai.RoleModel)
	}
	now := s.steps[s.done]
	s.done++
	var arguments map[string]any
	require.NoError(s.t, json.Unmarshal([]byte(now.arguments), &arguments), now.arguments)
	return genai.NewContentFromFunctionCall(now.tool, arguments, genai.RoleModel)
}

// runSteps runs an agent whose model makes the calls of the steps.
func runSteps(t *testing.T, set *tools.Set, steps ...step) {
	t.Helper()
	m := &script{t: t, steps: steps}
	a, err := llmagent.New(llmagent.Config{Name: "agent", Description: "does as the script says",
		Model: m, Tools: Tools(set)})
	require.NoError(t, err)
	r, err := runner.New(runner.Config{AppName: "test", Agent: a,
		SessionService: session.InMemoryService(), AutoCreateSession: true})
	require.NoError(t, err)
	last := ""
	for event, err := range r.Run(t.Context(), "user", "session",
		genai.NewContentFromText("Do it.", genai.RoleUser), agent.RunConfig{}) {
		require.NoError(t, err)
		last = event.Content.Parts[0].Text
	}
	require.Equal(t, "It is done.", last)
	require.Len(t, steps, m.done)
}

// TestTools has an agent find a bug, fix it, and answer a program's question. The agent also makes
// wrong calls.
func TestTools(t *testing.T) {
	box, err := localbox.New(t.Context(), localbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	files := box.Files()
	for name, text := range map[string]string{
		"mean.sh": "sum=0\nfor n; do sum=$((sum + n)); done\necho $((sum / 2))\n",
		"install.sh": "read -p 'Install mean.sh? [Y/n] ' answer\n[ \"$answer\" = Y ] && bash " +
			"mean.sh 2 4 9 && echo installed\n",
	} {
		require.NoError(t, files.WriteFile(t.Context(), name, []byte(text), 0o644))
	}
	set, err := tools.New(tools.Shell(box, tools.Config{}), tools.Files(files, tools.Config{}))
	require.NoError(t, err)
	runSteps(t, set,
		step{"run", `{"command": "bash mean.sh 2 4 9; (exit 3)"}`, "output", "7\n[exit status 3]"},
		step{"run", `{"cmd": "cat mean.sh"}`, "error", `there is no argument "cmd"`},
		step{"read", `{"path": "means.sh"}`, "error", "means.sh"},
		step{"run", `{"command": "cat mean.sh"}`, "output", "echo $((sum / 2))"},
		step{"edit", `{"path": "mean.sh", "old": "sum / 2", "new": "sum / $#"}`, "output",
			"[replaced"},
		step{"run", `{"command": "bash install.sh"}`, "output", "[waiting for a line of input]"},
		step{"answer", `{"text": "Y"}`, "output", "5\ninstalled\n"},
	)
	require.NoError(t, box.Close())
	runSteps(t, set, step{"run", `{"command": "ls"}`, "error", "closed"})
}
