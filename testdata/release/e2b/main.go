// E2b runs a command in a sandbox of the server that E2B_API_URL names.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sandshell/sandshell/e2bbox"
)

func main() {
	ctx := context.Background()
	box, err := e2bbox.New(ctx, e2bbox.Config{Template: os.Args[1]})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	for _, command := range []string{"cd /tmp; x=1", `echo "$PWD $((x + 1))"`} {
		res, err := box.Execute(ctx, command)
		if err != nil {
			box.Close()
			log.Fatal(err)
		}
		fmt.Print(res.Output)
	}
}
