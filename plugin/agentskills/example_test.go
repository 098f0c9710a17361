package agentskills_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin/agentskills"
)

func Example() {
	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	if err := box.InitPlugins(ctx, agentskills.Plugin()); err != nil {
		log.Fatal(err)
	}
	// A framework gives the model a name, a description and a JSON schema for each tool.
	for _, tool := range agentskills.Tools() {
		_, _, _ = tool.Name, tool.Description, tool.Parameters
	}
	// The model calls a tool.
	for _, call := range []struct{ name, arguments string }{
		{"create", `{"path": "greeting", "text": "hello\nwrold\n"}`},
		{"str_replace", `{"old": "wrold", "new": "world", "file": "greeting"}`},
		{"search_file", `{"term": "wor"}`},
		{"open", `{"file": "greeting"}`},
	} {
		command, err := agentskills.Command(call.name, json.RawMessage(call.arguments))
		if err != nil {
			fmt.Println("to the model:", err)
			continue
		}
		result, err := box.Execute(ctx, command)
		if err != nil {
			log.Fatal(err)
		}
		if call.name == "search_file" {
			fmt.Print(result.Output)
		}
	}
	// Output:
	// 2:world
	// to the model: open: the argument "path" is missing: the file
}
