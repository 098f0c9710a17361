package pytool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sshbox"
)

func Example() {
	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{}) // or sshbox.New
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	if err := box.InitPlugins(ctx, pytool.Plugin()); err != nil {
		log.Fatal(err)
	}
	buy := pytool.Tool{Function: "buy", Source: `
def buy(item, price, state):
    print("buying", item)
    if price > state["money"]:
        raise ValueError(f"{item} is too expensive")
    state["money"] -= price
    return {"bought": item}
`}
	state := any(map[string]int{"money": 10})
	for _, args := range []map[string]any{{"item": "tea", "price": 4},
		{"item": "a house", "price": 400}} {
		res, err := buy.Call(ctx, box, pytool.Call{Args: args, State: state, Timeout: time.Minute})
		var raised *pytool.Exception
		switch {
		case errors.As(err, &raised):
			fmt.Println(raised.Type, "-", raised.Message)
			continue
		case err != nil:
			log.Fatal(err)
		}
		fmt.Printf("%s %s %q\n", res.Value, res.State, res.Stdout)
		state = res.State
	}
	// Output:
	// {"bought": "tea"} {"money": 6} "buying tea\n"
	// ValueError - a house is too expensive
}

// A Runner makes a box for the first call, and a new one when a tool has other Needs.
func ExampleRunner() {
	runner, err := pytool.NewRunner(pytool.Config{Place: sshbox.Place{}})
	if err != nil {
		log.Fatal(err)
	}
	defer runner.Close()
	fetch := pytool.Tool{
		Source:   "import requests\ndef fetch(url): return requests.get(url).text",
		Function: "fetch",
		Needs: pytool.Needs{Image: "python:3.12-slim",
			Requirements: []string{"requests==2.32.*"}},
	}
	res, err := runner.Call(context.Background(), fetch,
		pytool.Call{Args: map[string]string{"url": "https://example.com"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", res.Value)
}
