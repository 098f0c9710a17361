package harness_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sandshell/sandshell/harness"
	"github.com/sandshell/sandshell/localbox"
)

// An agent at one task, on this machine. Without a Place, each task has a container of its Image.
func Example() {
	tasks := []harness.Task{{ID: "hello",
		Instruction: "Write hello into the file greeting.",
		Check:       harness.Check{Script: harness.Script{Command: "grep -qx hello greeting"}}}}
	agent := func(ctx context.Context, t *harness.Trial) error {
		_, err := t.Box.Execute(ctx, "echo hello >greeting") // ask a model, with t.Task.Instruction
		t.Count("tokens", 120)
		return err
	}
	dir, err := os.MkdirTemp("", "results")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	summary, err := harness.Run(context.Background(), harness.Config{
		Tasks: tasks, Agent: agent, Name: "my-agent", Dir: dir, Place: localbox.Place{}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary.Text())
	fmt.Println(summary.Count("tokens"), "tokens")
	// Output:
	// 1 pass of 1 task
	// 120 tokens
}
