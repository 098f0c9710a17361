// Package sandshell is the front door of a library of stateful sandboxes: a program asks one to run
// commands in a container, on any machine with an sshd, or on this machine, and the shell
// remembers. The working directory, variables, activated environments and running programs are
// still there at the next call; a program that asks a question is known to be asking, and can be
// answered; a runaway command is killed without losing the shell.
//
// This package holds no code. Start with:
//
//   - package sandbox: the interfaces, [github.com/sandshell/sandshell/sandbox.Sandbox] first, the options, results and errors;
//   - package localbox: a sandbox on this machine, which isolates nothing;
//   - package sshbox: DockerSSHBox, a container, and SSHBox, any machine you can ssh into;
//   - package kubebox: KubeBox, a pod;
//   - package sandbox/shellbox: a Sandbox out of any Host of your own;
//   - package sandbox/sandboxtest: the suite that shows whether it is one.
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
//	if err == nil && res.State == sandbox.Waiting { // res.Awaits is sandbox.Line, res.Output "name? "
//		res, err = box.Input(ctx, "ann\n")
//	}
//	fmt.Println(res.Output, res.ExitCode, err)
//
// # What is promised
//
// A command's end is known, not guessed from silence: the shell itself says it, by a marker that
// output cannot imitate. On Linux whether a program waits for input is read from /proc, not guessed
// either. Output is delivered once, in order, in bounded memory. Close leaves no goroutine,
// process, container or file behind. The same conformance suite runs against every box, in bash,
// dash and busybox ash.
package sandshell
