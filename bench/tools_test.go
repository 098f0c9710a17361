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

// BenchmarkTools calls a tool as a model does, from JSON to text. The floor executes the same
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
				if err != nil || text != "[no output]\n" {
					b.Fatal(text, err)
				}
			},
			rounds: 60, batch: 50, maxMore: time.Millisecond,
		}.run(b)
	})
}

// BenchmarkSearch searches 20,000 files of 11 KB in 1,000 directories. Nothing matches, so all are
// read. The floor is grep, which needs a program in the box, and does not heed .gitignore.
func BenchmarkSearch(b *testing.B) {
	places(b, func(b *testing.B, p place) {
		box := open(b, p)
		set, err := tools.New(tools.Box(box, tools.Config{}))
		noError(b, err)
		// by builtins: 20,000 programs would take minutes on a busy machine
		execute(b, box, `mkdir tree; cd tree; mkdir $(seq 1000); text=$(seq 2400); `+
			`for d in *; do for f in {1..20}; do printf '%s\n' "$text" >$d/$f; done; done`)
		search := json.RawMessage(`{"pattern": "needle|haystack"}`)
		comparison{
			floor: func() { execute(b, box, "! grep -rnE 'needle|haystack' .") },
			ours: func() {
				text, err := set.Call(b.Context(), "search", search)
				if err != nil || text != "[no matches]\n" {
					b.Fatal(text, err)
				}
			},
			rounds: 5,
		}.run(b)
		execute(b, box, "cd ..; rm -r tree")
	})
}

// BenchmarkMCP makes the same call by an MCP client, over the standard input and output of a server
// process. The floor executes the command in this process.
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
