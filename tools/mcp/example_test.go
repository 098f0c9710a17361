package mcp_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/tools/mcp"
)

// A client in the same program. Here the box is on this machine. With sshbox.Place it is a
// container. To serve the program that has started this one, call Stdio in place of Connect.
func Example() {
	ctx := context.Background()
	server, err := mcp.New(mcp.Config{Place: localbox.Place{}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	transport, err := server.Connect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "example", Version: "1"}, nil).
		Connect(ctx, transport, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for _, command := range []string{"X=1; cd /", `echo "X is $X in $PWD"`} {
		result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "run",
			Arguments: map[string]any{"command": command}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(strings.TrimSpace(result.Content[0].(*sdk.TextContent).Text))
	}
	// Output:
	// [no output]
	// X is 1 in /
}
