// Sandshell runs commands in sandboxes that remember: containers, pods, machines with an sshd, and
// this machine.
//
//	go install github.com/sandshell/sandshell/cmd/sandshell@latest
//	sandshell run debian:stable-slim           # a shell in a new container
//	sandshell run debian:stable-slim ls -l /   # one command; its exit status is sandshell's
//	sandshell help
//
// Each verb is a thin layer over a package of the module, in a file of its name. The table in
// command.go has all verbs: dispatch, help and completion come from it. The standard package flag
// parses the command line. Its flags can be written as -keep, it stops at the first argument, which
// run and exec need, and a table of fifteen verbs asks for no more; a library for commands, such as
// cobra, would add a second place for help and completion, and some packages.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	ctx, stop := untilSignal(context.Background())
	err := dispatch(ctx, os.Args[1:])
	stop()
	status, message := judge(ctx, err)
	if message != "" {
		fmt.Fprintln(os.Stderr, "sandshell:", message)
	}
	os.Exit(status)
}
