package sandbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// A function that takes any sandbox.Sandbox. Here the box is on this machine. With sshbox.New in
// place of localbox.New, it is a container.
func Example() {
	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	if err := greet(ctx, box); err != nil {
		log.Fatal(err)
	}
	// Output:
	// waiting for a line after "name? "
	// ann
	// hello ann, X is 1 in /tmp
	// exited with status 0
}

func greet(ctx context.Context, box sandbox.Sandbox) error {
	if _, err := box.Execute(ctx, "cd /tmp; X=1"); err != nil {
		return err
	}
	result, err := box.Execute(ctx,
		`printf 'name? '; read -r name; echo "hello $name, X is $X in $PWD"`)
	if err == nil && result.State == sandbox.Waiting {
		fmt.Printf("%v for a %v after %q\n", result.State, result.Awaits, result.Output)
		result, err = box.Input(ctx, "ann\n")
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s%v with status %d\n", result.Output, result.State, result.ExitCode)
	return nil
}
