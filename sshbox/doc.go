// Package sshbox has sandboxes that are reached by SSH: [SSHBox] is any machine with an SSH server,
// and [DockerSSHBox] is a container. Both are a [sandbox.Sandbox], with shells that remember,
// background jobs, copies and connections.
//
// # A container
//
// [New] makes a container from an image. Close removes it, with its anonymous volumes:
//
//	config := sshbox.Config{Image: "my-image", Network: "none", Memory: 2 << 30}
//	box, err := sshbox.New(ctx, config)
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	result, err := box.Execute(ctx, "make test")
//
// The image can be any Linux image for amd64 or arm64 that has a shell for the sessions. The SSH
// server is boxd, one static program that this package brings. boxd lies in a read-only volume of
// the engine, which is filled once, and is the container's init. It needs neither root nor
// capabilities, no entry in /etc/passwd, no writable file, and no program of the image, not even
// tar for copies. boxd listens on a socket without a file and without a port. To connect, the
// engine executes "boxd join" in the container, and the streams of that process are the connection.
// So a box works without a network, with an engine on another machine, and from within a container.
// Both sides' keys are made for one container, and are only in the memory of this process and of
// boxd.
//
// # Cuts
//
// Shells and jobs belong to boxd, not to the connection. The connection is cut when the engine
// restarts and keeps its containers, when the network to the engine fails, or when "boxd join" is
// killed. Shells and jobs then run on, and the box connects again by itself, for up to
// Config.Linger. Calls wait for that. No output and no input is lost or repeated: both sides count
// the bytes and go on from the last one that has arrived. During a cut, a session's program that
// has printed half a mebibyte waits; a job does not. Copies, and connections of Dial and Listen,
// cannot be continued: they return sandbox.ErrCut, and can be tried again.
//
// # Plugins
//
// A box has the plugins of Config.Plugins from the start:
//
//	box, err := sshbox.New(ctx, sshbox.Config{Plugins: []plugin.Plugin{jupyter.Plugin()}})
//
// The first New makes a container from the image, sets the plugins up there, and commits it as the
// image sandshell-plugins:KEY. KEY is a digest of the image, the user, and the plugins with their
// files and variables. Later boxes with the same KEY start from that image. They run no setup, only
// the plugins' checks. While one program makes an image, other programs wait for it. If a setup
// fails, New returns its error and leaves nothing. What apt-get and pip have downloaded stays in a
// volume, so that a changed plugin does not download it again. [Engine.Prune] removes images and
// volumes.
//
// # Boxes that outlive their program
//
// A box ends with its program, even if the program is killed: when nobody has connected for
// Config.Linger, boxd stops and the engine removes the container. A box with Config.Keep stays
// after [shellbox.Box.Detach], or after any end of its program, until somebody closes it.
// [Engine.List] finds boxes. [Engine.Attach] takes one over, with its sessions, unfinished
// commands, and jobs with their logs. [Engine.Reap] removes what is left of containers that have
// ended.
//
// # Whom to trust
//
// boxd is process 1 and runs as the box's user. A program that runs in the box as that user, or as
// root, can do this to boxd, to your connection and to other programs:
//
//   - It can send boxd signals, but the kernel does not let a signal from inside kill process 1.
//     SIGTERM and SIGINT stop the box, as docker stop does.
//   - It cannot read boxd's memory nor trace boxd, because boxd is not dumpable and the container
//     has no CAP_SYS_PTRACE. It cannot change boxd's program, because the volume is read-only. (A
//     box with CAP_SYS_ADMIN, which could change that, gets a volume of its own.)
//   - It can connect to boxd's socket, but boxd serves only processes that came from outside, whose
//     parent is in no namespace of the container. By tracing a "boxd join" in its first moment it
//     can become such a process. It still has neither the owner's key nor boxd's, and the
//     connection is cut.
//   - It can kill "boxd join", which is a cut.
//   - It can stop programs of the same user, and read and change their memory and terminals.
//   - It can use up the container's memory, processes and disk, and print anything.
//
// So a result is only as trustworthy as the box's programs. A command's output and exit status come
// from the shell, which gets its commands over a socket that no other program can open. The file
// server gets its requests in the same way. But a program of the same user that may trace can read
// the shell's memory, copy its descriptor (pidfd_getfd), forge its output, or replace it. Where a
// result matters, such as a score or a test, run untrusted programs as another user of the box, or
// look at their files from outside when they have ended.
//
// By default, programs in the container cannot gain privileges, root has only the capabilities that
// a package manager needs, and the number of processes is limited. Memory and processors are not
// limited, and the network is the engine's default. The engine's socket cannot be mounted. As
// always with containers, all boxes share the kernel of the engine's machine; Config.Runtime
// selects another runtime.
//
// [DockerSSHBox.SSHConfig] lets people in: with ssh, scp, sftp, rsync, git and editors.
//
// # A machine
//
// [Dial] logs in over TCP, or over any connection that DialConfig.DialContext makes, such as
// another sandbox's Dial:
//
//	box, err := sshbox.Dial(ctx, sshbox.DialConfig{Address: "build-1.example.com", User: "ci"})
//
// The host key is always checked: against known_hosts, as ssh does, or by DialConfig.HostKey. The
// server's default settings suffice; it needs neither sftp nor forwarding. Only the account limits
// what runs in an SSHBox.
//
// If the machine runs Linux on amd64 or arm64, Dial copies boxd there, once per version (some 6
// MB), to DialConfig.Boxd, by default ~/.cache/sandshell. The login starts boxd, and boxd outlives
// the login. Sessions and jobs then behave as in a container. After a cut, the box logs in again
// with the same DialConfig. Programs inherit environment, umask and limits from the login. Close
// leaves only boxd's program, which [Machine.Prune] removes. If this program is killed, boxd and
// everything that it has started end after DialConfig.Linger. With DialConfig.Keep they stay, and
// [Machine.Attach] takes the box over. If boxd is killed or the machine restarts, the box is lost;
// the next Dial, or [Machine.Reap], removes what is left.
//
// On other machines (macOS, another architecture, a home that is mounted noexec, a full disk) and
// with [NoBoxd], each program is a session of the SSH server. The eleventh gets a second
// connection, because OpenSSH's MaxSessions is 10. A cut ends the box. [SSHBox.Boxd] says whether
// boxd carries the box, and if not, why.
//
// boxd listens on a socket in a directory of mode 0700, and serves only processes of its own user,
// whom the kernel names. Every program of that user, also one in the box, can end the box or take
// it over; its owner then learns of it. Other users can do neither. The directory for boxd's
// program must belong to the user, and nobody else may be able to write to it. The program's
// checksum is compared before each start. With systemd's KillUserProcesses=yes, which is not the
// default, the end of a login ends boxd too, so that a cut loses the box. "loginctl enable-linger"
// does not help, because boxd belongs to the login's scope; KillExcludeUsers in logind.conf does.
//
// # Concurrency and lifetimes
//
// All methods may be called from several goroutines. A context governs its call only. When the
// connection or the container is gone, calls return a *sandbox.LostError, which says why. A lost
// box stays lost; Close removes what is left of it. A paused container is not lost: calls wait
// until it is unpaused, or until their context ends and then up to 10 s more, because the command
// cannot be killed meanwhile. Close ends everything that is under way, waits for its goroutines,
// and can be called again.
//
// # Limits
//
// In an SSHBox without boxd, the user's login shell executes a POSIX shell, which executes the
// program. For a program on a terminal, arguments and environment together must be shorter than
// about 100 KiB. OpenSSH names only 13 signals: a program that another signal has ended has the
// exit code 128.
//
// Without boxd, a script finds out whether a program waits for input, and it sees less than boxd.
// It sees a read of the terminal, an epoll that includes it, and a select of descriptor 0 alone. It
// does not see which descriptors another poll or select waits for (as in nc, telnet, ssh, Perl and
// Ruby). In line mode such a program does not count as waiting. In raw mode it does, with MayGoOn
// unless it polls one descriptor alone. The script does not find 32-bit programs, nor programs
// whose parent has ended (such as the pinentry of a gpg-agent). For these, use Yield, Idle and
// Until.
package sshbox
