// Package jupyter runs cells of Python in an IPython kernel in a sandbox. The kernel keeps what
// cells define.
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
//		return err // the kernel has died, ctx has ended, …
//	}
//	if result.Error != nil {
//		return result.Error // NameError: …
//	}
//	fmt.Println(result.Text) // 3.141592653589793
//
// The command execute_cli in the box runs its standard input in the same kernel, and prints what a
// notebook shows:
//
//	box.Execute(ctx, "execute_cli <<'EOF'\nprint(math.tau)\nEOF")
//
// Its exit status is 1 if the cell raised an exception, and 130 if it was interrupted. It writes
// figures to files and prints their names. input() reads the session's terminal, so Execute returns
// with State Waiting. The option --kernel NAME chooses another kernel; --restart and --stop restart
// and stop the kernel.
//
// # Kernels
//
// A box may have several kernels. Each is a process with a name; the default name is "default". The
// first client of a kernel starts it, in the client's directory and environment. The kernel lives
// until it is stopped, dies, or the box is closed. The end of a Client or of a session does not end
// it. All clients of a kernel share its state and its queue: one cell runs at a time. [Kernels]
// lists the kernels of a box.
//
// When a kernel dies (exit(), os._exit, a crash, a full memory), what cells have defined is lost.
// So nothing starts a new one without being told to: Run returns a [*DeadError], and execute_cli an
// error, until [Client.Restart], execute_cli --restart or [Connect] starts a fresh kernel.
//
// # Who can reach a kernel
//
// The kernel listens on Unix sockets in a directory that only the box's user may enter. (IPython
// itself also has a port on the box's loopback interface, for the output of processes that a cell
// forks.) Messages are signed. The key is in a file of that directory and in the memory of clients.
// A [Client] reaches the sockets through [sandbox.Sandbox.Dial] and needs no network.
//
// # Limits
//
// A message of the kernel may have 5 MiB, Result.Outputs 8 MiB in all, and Result.Stdout and
// Result.Stderr [MaxOutput] bytes each. Result.Omitted counts the bytes beyond that.
//
// # Concurrency
//
// The methods of a [Client] may be called from several goroutines. Runs wait for each other.
// Interrupt, Restart, Stop and Close do not wait for a Run.
package jupyter
