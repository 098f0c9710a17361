//go:build linux

package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/tools"
)

// BenchmarkTools is a model's call of a tool, from its JSON to its text, beside Execute of the same
// command.
func BenchmarkTools(b *testing.B) {
	places(b, func(b *testing.B, p place) {
		box := open(b, p)
		set, err := tools.New(tools.Box(box, tools.Config{}))
		noError(b, err)
		comparison{
			floor: func() { execute(b, box, ":") },
			ours: func() {
				text, err := set.Call(b.Context(), "run", json.RawMessage(`{"command": ":"}`))
				if err != nil || text != "" {
					b.Fatal(text, err)
				}
			},
			rounds: 60, batch: 50, maxMore: time.Millisecond,
		}.run(b)
	})
}

// BenchmarkMCP is the same call by an MCP client over the standard input and output of a server in
// a process of its own, beside Execute here.
func BenchmarkMCP(b *testing.B) {
	b.Run("local", func(b *testing.B) {
		program := b.TempDir() + "/mcp"
		build := exec.Command("go", "build", "-o", program,
			"github.com/sandshell/sandshell/examples/mcp")
		build.Stderr = os.Stderr
		noError(b, build.Run())
		server := exec.Command(program, "-local")
		server.Dir = b.TempDir()
		client, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"},
			nil).Connect(b.Context(), &sdk.CommandTransport{Command: server}, nil)
		noError(b, err)
		defer client.Close()
		box, err := localbox.New(b.Context(), localbox.Config{})
		noError(b, err)
		defer box.Close()
		comparison{
			floor: func() { execute(b, box, ":") },
			ours: func() {
				r, err := client.CallTool(b.Context(), &sdk.CallToolParams{Name: "run",
					Arguments: map[string]any{"command": ":"}})
				if err != nil || r.IsError {
					b.Fatal(r, err)
				}
			},
			rounds: 60, batch: 50, maxMore: 2 * time.Millisecond,
		}.run(b)
	})
}
