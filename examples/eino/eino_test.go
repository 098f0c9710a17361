package eino

import (
	"context"
	"fmt"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/adk/middlewares/filesystem"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/stretchr/testify/require"
)

// A step is a call that the scripted model makes. says is a part of the result that it expects.
type step struct{ tool, arguments, says string }

// A script is a model that makes the calls of its steps in turn, and checks the results.
type script struct {
	t     *testing.T
	steps []step
	done  *int
}

func (s script) WithTools(infos []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	for _, i := range infos {
		parameters, err := i.ToJSONSchema()
		require.NoError(s.t, err)
		require.NotNil(s.t, parameters, i.Name)
	}
	return s, nil
}

func (s script) Generate(_ context.Context, input []*schema.Message,
	_ ...model.Option) (*schema.Message, error) {
	n := *s.done
	if n > 0 {
		require.Contains(s.t, input[len(input)-1].Content, s.steps[n-1].says,
			s.steps[n-1].arguments)
	}
	if n == len(s.steps) {
		return schema.AssistantMessage("It is done.", nil), nil
	}
	*s.done++
	return schema.AssistantMessage("", []schema.ToolCall{{
		ID: fmt.Sprint(n), Type: "function",
		Function: schema.FunctionCall{Name: s.steps[n].tool, Arguments: s.steps[n].arguments},
	}}), nil
}

func (s script) Stream(ctx context.Context, input []*schema.Message,
	opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := s.Generate(ctx, input, opts...)
	return schema.StreamReaderFromArray([]*schema.Message{m}), err
}

// runSteps runs an agent whose model makes the calls of the steps.
func runSteps(t *testing.T, c adk.ChatModelAgentConfig, steps ...step) {
	t.Helper()
	c.Name, c.Description, c.Model, c.MaxIterations = "agent", "does as the script says",
		script{t, steps, new(int)}, 2*len(steps)
	agent, err := adk.NewChatModelAgent(t.Context(), &c)
	require.NoError(t, err)
	events := adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent}).Query(t.Context(),
		"Do it.")
	last := ""
	for {
		e, ok := events.Next()
		if !ok {
			break
		}
		require.NoError(t, e.Err)
		if e.Output != nil && e.Output.MessageOutput != nil {
			m, err := e.Output.MessageOutput.GetMessage()
			require.NoError(t, err)
			last = m.Content
		}
	}
	require.Equal(t, "It is done.", last)
}

func box(t *testing.T) *localbox.LocalBox {
	t.Helper()
	b, err := localbox.New(t.Context(), localbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func TestTools(t *testing.T) {
	b := box(t)
	set, err := tools.New(tools.Box(b, tools.Config{}))
	require.NoError(t, err)
	runSteps(t, adk.ChatModelAgentConfig{ToolsConfig: adk.ToolsConfig{
		ToolsNodeConfig: compose.ToolsNodeConfig{Tools: Tools(set)}}},
		step{"write",
			`{"path": "ask.sh", "content": "read -p 'Name? ' name; echo \"Hi $name!\"\n"}`,
			"[wrote ask.sh"},
		step{"run", `{"command": "bash ask.sh"}`, "[waiting for a line of input]"},
		step{"answer", `{"text": "Ann"}`, "Hi Ann!"},
		step{"run", `{"cmd": "ls"}`, `there is no argument "cmd"`},
		step{"edit", `{"path": "ask.sh", "old": "Hi", "new": "Hello"}`, "[replaced"},
		step{"run", `{"command": "bash ask.sh <<<Bob; (exit 3)"}`, "Hello Bob!\n[exit status 3]"},
	)
}

func TestBackend(t *testing.T) {
	b := box(t)
	files, err := filesystem.NewMiddleware(t.Context(),
		&filesystem.Config{Backend: &Backend{Box: b}})
	require.NoError(t, err)
	dir := b.Dir()
	runSteps(t, adk.ChatModelAgentConfig{Middlewares: []adk.AgentMiddleware{files}},
		step{"write_file", fmt.Sprintf(`{"file_path": "%s/src/a.py", "content": "x = 1\ny = 2\n"}`,
			dir), ""},
		step{"edit_file",
			fmt.Sprintf(
				`{"file_path": "%s/src/a.py", "old_string": "y = 2", "new_string": "print(x)"}`,
				dir), ""},
		step{"read_file", fmt.Sprintf(`{"file_path": "%s/src/a.py"}`, dir), "print(x)"},
		step{"ls", fmt.Sprintf(`{"path": %q}`, dir), dir + "/src"},
		step{"glob", fmt.Sprintf(`{"pattern": "**/*.py", "path": %q}`, dir), dir + "/src/a.py"},
		step{"grep", fmt.Sprintf(`{"pattern": "print(", "path": %q, "output_mode": "content"}`,
			dir), "print(x)"},
		step{"execute", `{"command": "cd src && python3 -B a.py"}`, "1\n"},
		step{"execute", `{"command": "pwd; read x || echo nobody; (exit 3)"}`, "/src\nnobody\n"},
	)
}
