// Package sandshell is the documentation of a library of stateful sandboxes. A sandbox runs a
// program's commands in a container, in a pod, on any machine with an sshd, or on this machine. Its
// shell remembers: the working directory, variables, activated environments and running programs
// are still there at the next call. If a command asks a question, the call says so, and the program
// can answer. A runaway command can be killed without losing the shell.
//
// This package holds no code. Start with:
//
//   - package sandbox: the interface Sandbox, with its options, results and errors
//   - package localbox: a sandbox on this machine, without isolation
//   - package sshbox: DockerSSHBox, a container, and SSHBox, any machine that you can ssh into
//   - package kubebox: KubeBox, a pod
//   - package tools: a sandbox as tools for a model; tools/mcp serves them over MCP
//   - package plugin: what is set up in a sandbox: Jupyter, a browser, Python tools, your own
//   - package harness: an agent at many tasks, each in a sandbox of its own
//   - package service: many sandboxes for many users, by id
//   - packages sandbox/recording, tracing and logging: recordings, traces and logs of a sandbox
//   - package sandbox/shellbox: makes a Sandbox from a Host of your own
//   - package sandbox/sandboxtest: the suite that checks a Sandbox
//
// # A program
//
//	ctx := context.Background()
//	box, err := sshbox.New(ctx, sshbox.Config{}) // a container from debian:stable-slim
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer box.Close()
//	box.Execute(ctx, "cd /tmp && X=1")
//	res, err := box.Execute(ctx, `read -p "name? " n; echo "hello $n, X is $X in $PWD"`)
//	if err == nil && res.State == sandbox.Waiting { // read waits for a line
//		res, err = box.Input(ctx, "ann\n")
//	}
//	if err != nil {
//		log.Fatal(err) // an exit status other than 0 is no error
//	}
//	fmt.Println(res.Output, res.ExitCode)
//
// # What is promised
//
// The library does not guess from silence that a command has ended. The shell itself reports the
// end, with a marker that no output can imitate. That a program waits for input is read from /proc
// on Linux; docs/how-it-knows.md says where that is a guess. Output is delivered once, in order,
// and in bounded memory. Close leaves no goroutine, process, container or file behind. The same
// conformance suite runs against every box, with bash, dash and busybox ash.
package sandshell
