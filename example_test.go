package sandshell_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// The shell remembers, a question is answered, and a command that takes too long is stopped. With
// sshbox.New in place of localbox.New, the program works in a container.
func Example() {
	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	box.Execute(ctx, "mkdir project; cd project; greeting=hello")
	res, err := box.Execute(ctx,
		`printf 'name? '; read -r name; echo "$greeting $name from ${PWD##*/}"`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v for a %v after %q\n", res.State, res.Awaits, res.Output)
	res, err = box.Input(ctx, "ann\n")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Output)

	res, err = box.Execute(ctx, "sleep 1000", sandbox.Timeout(100*time.Millisecond))
	fmt.Println(errors.Is(err, sandbox.ErrTimeout), res.ExitCode)
	res, _ = box.Execute(ctx, `echo "still in ${PWD##*/}, greeting is $greeting"`)
	fmt.Print(res.Output)
	// Output:
	// waiting for a line after "name? "
	// ann
	// hello ann from project
	// true 130
	// still in project, greeting is hello
}
