// Package sandshell is a library of stateful sandboxes: a program runs commands in a container, in
// a pod, on any machine with an sshd, or on this machine, in a shell that remembers. The working
// directory, variables, activated environments and running programs are still there at the next
// call. If a command asks a question, the call says so, and the program can answer. A runaway
// command can be killed without losing the shell.
//
// The packages below hold the code; this one holds only this text. The contract is in
// [github.com/sandshell/sandshell/sandbox]: the interface Sandbox, with its options, results and
// errors.
//
// These packages make sandboxes:
//
//   - [github.com/sandshell/sandshell/localbox]: on this machine, without isolation
//   - [github.com/sandshell/sandshell/sshbox]: containers, and any machine that you can ssh into
//   - [github.com/sandshell/sandshell/kubebox]: pods of a Kubernetes cluster
//   - [github.com/sandshell/sandshell/e2bbox]: sandboxes on E2B's API
//   - [github.com/sandshell/sandshell/sandbox/shellbox]: from a Host of your own
//
// These packages use them:
//
//   - [github.com/sandshell/sandshell/tools]: a sandbox as tools for a model;
//     [github.com/sandshell/sandshell/tools/mcp] serves them over MCP
//   - [github.com/sandshell/sandshell/plugin]: what is set up in a sandbox: Jupyter, a
//     browser, Python tools, your own
//   - [github.com/sandshell/sandshell/egress]: what a sandbox without a network may reach
//   - [github.com/sandshell/sandshell/harness]: an agent at many tasks, each in a sandbox
//     of its own
//   - [github.com/sandshell/sandshell/service]: many sandboxes for many users, by id
//   - [github.com/sandshell/sandshell/sandbox/recording],
//     [github.com/sandshell/sandshell/sandbox/tracing] and
//     [github.com/sandshell/sandshell/sandbox/logging]: recordings, traces and logs
//   - [github.com/sandshell/sandshell/sandbox/sandboxtest]: the suite that checks a
//     Sandbox
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
// on Linux; docs/how-it-knows.md in the module's repository says where that is a guess. Output is
// delivered once, in order, and in bounded memory. Close leaves no goroutine, process, container or
// file behind. The same conformance suite runs against every box, with bash, dash and busybox ash.
package sandshell
