// Package jupyter gives a sandbox an IPython kernel, which remembers what cells define, and runs cells in it.
//
//	if err := box.InitPlugins(ctx, jupyter.Plugin()); err != nil {
//		return err
//	}
//	client, err := jupyter.Connect(ctx, box)
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
// In the box there is execute_cli, which runs what it reads in the same kernel, and prints what a notebook would show:
//
//	box.Execute(ctx, "execute_cli <<'EOF'\nprint(math.tau)\nEOF")
//
// Its exit status is 1 if the cell raised, 130 if it was interrupted; figures go to files, whose names it prints. input() reads the session's
// terminal: Execute returns with State Waiting. --kernel NAME names another kernel; --restart and --stop are what they say.
//
// # Kernels
//
// A box has any number of kernels, by name, each a process of its own; "default" unless one says otherwise. A kernel is started by who first wants
// it, in that one's directory and environment, and lives until it is stopped, dies, or the box is closed; closing a Client or a session
// does not end it. All clients of a kernel share its state, and its queue: one cell at a time.
//
// A kernel that has died, by os._exit, a crash or for want of memory, stays dead: Run returns a [*DeadError] and execute_cli fails with the like
// until [Client.Restart], or execute_cli --restart, since what was defined is lost. [Connect] starts a fresh one too.
//
// # Who can reach it
//
// The kernel listens on Unix sockets in a directory that only the box's user may enter, and nowhere else but for a port of the box's loopback on
// which IPython itself takes the output of processes that a cell forks. Messages are signed; the key is in a file of that directory, and in the
// memory of clients. Go reaches the sockets through [sandbox.Sandbox.Dial], with no network.
//
// # Bounds
//
// A message of the kernel may have 64 MiB, Result.Outputs as much in all, Result.Stdout and Result.Stderr what [MaxOutput] says.
// What is more is left out and counted in Result.Omitted.
//
// # Concurrency
//
// All methods of a [Client] may be called from several goroutines. Runs wait for each other; Interrupt, Restart, Stop and Close do not wait for
// a turn.
package jupyter
