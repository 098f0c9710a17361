// Package sshbox has sandboxes that are reached by SSH: [SSHBox], any machine that one can log in to, and
// [DockerSSHBox], a container. Both are a sandbox.Sandbox: shells that remember, background jobs, copies,
// connections.
//
// # A container
//
// [New] makes a container of an image and removes it on Close:
//
//	box, err := sshbox.New(ctx, sshbox.Config{Image: "my-image", Network: "none", Memory: 2 << 30})
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	result, err := box.Execute(ctx, "make test")
//
// The image needs OpenSSH's sshd, 7.8 or later, a shell at /bin/sh, and an entry in /etc/passwd for the user; nothing
// has to be set up for it. The container's main process is that sshd, for one connection, over the standard streams
// that the engine hands on: there is no port, so that it works with no network, with an engine on another machine,
// and from within a container. Both sides' keys are made for the one container. The private ones are in this
// process's memory and in a tmpfs that only root in the container can read, never in arguments, environment, labels
// or logs.
//
// By default, programs in the container gain no privileges, root has the capabilities that a package manager needs
// and no others, there is a limit on processes, and an init reaps orphans. Memory and processors are not limited, and
// the network is the engine's default: set what you need. The engine's socket cannot be mounted. As with any
// container, all of them share the engine's kernel; Runtime selects another runtime.
//
// Close removes the container with its anonymous volumes. When the process ends without Close, even by SIGKILL, the
// container's streams end, and with them the container; what remains of it is not running, and is removed by the next New
// on the same machine, or by "docker container prune --filter label=sandshell".
//
// # A machine
//
// [Dial] logs in over TCP, or over any connection that DialConfig.DialContext makes, such as another sandbox's Dial:
//
//	box, err := sshbox.Dial(ctx, sshbox.DialConfig{Address: "build-1.example.com", User: "ci"})
//
// The host key is checked, always: against known_hosts as ssh does, or by DialConfig.HostKey. The server needs
// nothing but its defaults; OpenSSH, whose MaxSessions is 10, gets a second connection for the eleventh session. What
// runs in an SSHBox is limited by nothing but the account.
//
// # Concurrency and lifetimes
//
// All methods may be called from several goroutines. A context governs its call only. When the connection or the
// container is gone, calls return a *sandbox.LostError, which says why; a lost box stays lost, and Close of it still
// removes what is left. A paused container is not lost: calls wait until it goes on. Close ends all that goes on,
// waits for its goroutines, and can be called again.
//
// # Limits
//
// A program is started by the user's login shell, whichever it is, which becomes a POSIX shell, which becomes the
// program. On a terminal, arguments and environment together have to be shorter than about 100 KiB. OpenSSH tells the
// names of 13 signals only: a program that another one ended has the exit code 128.
package sshbox
