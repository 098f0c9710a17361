package localbox_test

import (
	"context"
	"fmt"
	"log"
	"regexp"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// The shell remembers its directory and its variables. A job runs beside it, asks, and is answered.
func Example() {
	ctx := context.Background()
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	if _, err := box.Execute(ctx, "mkdir project; cd project; X=1"); err != nil {
		log.Fatal(err)
	}
	result, err := box.Execute(ctx, `echo "X is $X in ${PWD##*/}"; (exit 3)`)
	if err != nil {
		log.Fatal(err) // an exit status other than 0 is no error
	}
	fmt.Printf("%sexit status %d\n", result.Output, result.ExitCode)

	job, err := box.Background(ctx, `echo "Go on?"; read -r answer; echo "You said $answer."`)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := job.Until(ctx, sandbox.Until(regexp.MustCompile(`\?`))); err != nil {
		log.Fatal(err)
	}
	if err := job.Input(ctx, "yes\n"); err != nil {
		log.Fatal(err)
	}
	if result, err = job.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Print(result.Output)
	// Output:
	// X is 1 in project
	// exit status 3
	// Go on?
	// yes
	// You said yes.
}
