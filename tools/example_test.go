package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/tools"
)

// A program gives a box to a model as tools, and calls the tools that the model names.
func Example() {
	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	type weather struct {
		Town string `json:"town" jsonschema:"the town's name"`
	}
	set, err := tools.New(
		tools.Box(box, tools.Config{}),
		tools.Func("weather", "Tells the weather.", func(_ context.Context,
			a weather) (string, error) {
			return "It rains in " + a.Town + ".\n", nil
		}),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()

	for _, call := range []struct{ name, args string }{
		{"write", `{"path": "greet.sh", "content": "read -p 'Name?' name\necho \"Hello, $name!\"\n"}`},
		{"run", `{"command": "bash greet.sh"}`},
		{"answer", `{"text": "Ann"}`},
		{"weather", `{"city": "Ulm"}`},
	} {
		text, err := set.Call(ctx, call.name, json.RawMessage(call.args))
		if err != nil {
			log.Fatal(err) // the box is lost: no model can correct that
		}
		fmt.Print(text)
	}
	// Output:
	// [wrote greet.sh, 42 bytes]
	// Name?
	// [waiting for a line of input]
	// Ann
	// Hello, Ann!
	// error: wrong arguments for weather:
	// - there is no argument "city"
	// - the argument "town" is missing
	// It takes:
	// - town (string, required): the town's name
}
