// Container runs a command in a container of the image that it is given.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sandshell/sandshell/sshbox"
)

func main() {
	ctx := context.Background()
	box, err := sshbox.New(ctx, sshbox.Config{Image: os.Args[1], Network: "none"})
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
