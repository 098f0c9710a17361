// Package jupyter gives a sandbox an IPython kernel, which remembers what cells define, and runs
// cells in it.
//
//	if err := box.InitPlugins(ctx, jupyter.Plugin()); err != nil {
//		return err
//	}
//	client, err := jupyter.Connect(ctx, box, jupyter.Config{})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	result, err := client.Run(ctx, "import math; math.pi")
//	if err != nil {
//		return err // the kernel died, ctx ended, …
//	}
//	if result.Error != nil {
//		return result.Error // NameError: …
//	}
//	fmt.Println(result.Text) // 3.141592653589793
//
// The command execute_cli in the box runs its standard input in the same kernel, and prints what a
// notebook would show:
//
//	box.Execute(ctx, "execute_cli <<'EOF'\nprint(math.tau)\nEOF")
//
// Its exit status is 1 if the cell raised an exception, 130 if it was interrupted. Figures go to
// files, whose names it prints. input() reads the session's terminal: Execute returns with State
// Waiting. --kernel NAME names another kernel; --restart and --stop restart and stop it.
//
// # Kernels
//
// A box has any number of kernels, each a process with a name; the default is "default". The first
// client to ask for a kernel starts it, in the client's directory and environment. It lives until
// it is stopped, dies, or the box is closed; closing a Client or a session does not end it. All
// clients of a kernel share its state, and its queue: one cell runs at a time.
//
// A kernel that has died (exit(), os._exit, a crash, no memory) stays dead, because all that cells
// defined is lost: Run returns a [*DeadError], and execute_cli says the same, until
// [Client.Restart], execute_cli --restart or [Connect] starts a fresh one.
//
// # Who can reach it
//
// The kernel listens on Unix sockets in a directory that only the box's user may enter. (IPython
// itself has a port on the box's loopback beside them, for the output of processes that a cell
// forks.) Messages are signed; the key is in a file of that directory and in the memory of clients.
// Go reaches the sockets through [sandbox.Sandbox.Dial], with no network.
//
// # Bounds
//
// A message of the kernel may have 5 MiB, Result.Outputs 8 MiB in all, Result.Stdout and
// Result.Stderr [MaxOutput] bytes each. Bytes beyond that are counted in Result.Omitted.
//
// # Concurrency
//
// All methods of a [Client] may be called from several goroutines. Runs wait for each other;
// Interrupt, Restart, Stop and Close do not wait for a turn.
package jupyter
