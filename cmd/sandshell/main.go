// Sandshell runs commands in sandboxes that remember: containers, pods, machines with an sshd, and
// this machine.
//
//	go install github.com/sandshell/sandshell/cmd/sandshell@latest
//	sandshell run debian:stable-slim           # a shell in a new container
//	sandshell run debian:stable-slim ls -l /   # one command; its exit status is sandshell's
//	sandshell help run                         # flags and examples of a verb
//
// The verbs are:
//
//	run         makes a box and runs a command in it
//	ls          lists boxes
//	attach      connects the terminal to a box that is there
//	exec        runs a command in a box that is there
//	cp          copies files and directories into a box or out of it
//	logs        prints what a job of a box has printed
//	rm          removes boxes with all that runs in them
//	reap        removes what is left of boxes whose program was killed
//	prune       removes what a place keeps for later boxes
//	mcp         gives an MCP client a box: a shell, files and jobs
//	serve       serves boxes for many users over HTTP
//	eval        runs an agent on many tasks, and judges each result
//	compare     compares two runs of sandshell eval
//	play        plays a recording (asciicast v2)
//	completion  prints a script with which a shell completes words
//	version     prints the version of sandshell
//
// Boxes are containers of the engine that the docker command would use. The flag -place, or
// SANDSHELL_PLACE in the environment, chooses another place: ssh://[user@]host[:port], kube or
// local. The places ssh and local isolate nothing.
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
