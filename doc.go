// Package sandshell is the front door of a library of stateful sandboxes. A sandbox runs a
// program's commands in a container, in a pod, on any machine with an sshd, or on this machine, and
// its shell remembers: the working directory, variables, activated environments and running
// programs are still there at the next call. A program that asks a question is known to ask, and
// can be answered. A runaway command is killed without losing the shell.
//
// This package holds no code. Start with:
//
//   - package sandbox: the interface Sandbox, with its options, results and errors
//   - package localbox: a sandbox on this machine, which isolates nothing
//   - package sshbox: DockerSSHBox, a container, and SSHBox, any machine you can ssh into
//   - package kubebox: KubeBox, a pod
//   - packages sandbox/recording and sandbox/tracing: recordings and traces of a sandbox
//   - package sandbox/shellbox: makes a Sandbox of any Host of your own
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
//	if err == nil && res.State == sandbox.Waiting { // for a sandbox.Line, after "name? "
//		res, err = box.Input(ctx, "ann\n")
//	}
//	fmt.Println(res.Output, res.ExitCode, err)
//
// # What is promised
//
// The end of a command is not guessed from silence: the shell itself tells it, by a marker that
// output cannot imitate. Whether a program waits for input is not guessed either: on Linux it is
// read from /proc. Output is delivered once, in order, in bounded memory. Close leaves no
// goroutine, process, container or file behind. The same conformance suite runs against every box,
// in bash, dash and busybox ash.
package sandshell
