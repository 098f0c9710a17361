// Package sshbox has sandboxes that are reached by SSH: [SSHBox], any machine that one can log in
// to, and [DockerSSHBox], a container. Both are a sandbox.Sandbox: shells that remember, background
// jobs, copies, connections.
//
// # A container
//
// [New] makes a container of an image and removes it on Close:
//
//	config := sshbox.Config{Image: "my-image", Network: "none", Memory: 2 << 30}
//	box, err := sshbox.New(ctx, config)
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	result, err := box.Execute(ctx, "make test")
//
// The image can be any Linux image for amd64 or arm64 that has a shell for the sessions. The server
// is boxd, one static program that this package carries: it lies in a read-only volume of the
// engine, which is filled once, and is the container's init. It needs no root, no capability, no
// entry in /etc/passwd, no writable file, and nothing of the image, no tar for copies either. It
// listens on a socket that has no file and no port; the engine executes it once more in the
// container ("boxd join"), and the streams of that are the connection. So it works with no network,
// with an engine on another machine, and from within a container. Both sides' keys are made for the
// one container and are nowhere but in the memory of this process and of boxd.
//
// # Cuts
//
// A session's shell and a job belong to boxd, not to the connection. When that is cut (the engine
// restarts and keeps its containers, the network to it fails, the process in the container that
// joins them is killed), they run on, and the box connects again by itself, for as long as
// Config.Linger. Calls wait meanwhile. Nothing is lost, and nothing comes twice: what a program
// printed is asked for from the last byte read on, and what was typed is sent again from the last
// byte taken on. A program that prints more than half a mebibyte meanwhile waits; a job does not.
// Copies, and connections that were dialed or accepted, cannot be gone on with: they return
// sandbox.ErrCut, and can be tried again.
//
// # Plugins
//
// With Config.Plugins a box has them from the start:
//
//	box, err := sshbox.New(ctx, sshbox.Config{Plugins: []plugin.Plugin{jupyter.Plugin()}})
//
// The first New makes a container of the image, has package plugin set them up there, and commits
// that as the image sandshell-plugins:KEY; KEY stands for the image, the user, and the plugins with
// their files and variables. Every later box with the same KEY starts from it and runs no setup,
// only the plugins' checks. While one program makes an image, others that want the same wait for
// it. A failed setup leaves nothing, and is New's error. What apt-get and pip have downloaded stays
// in a volume, so that a changed plugin does not download it again. [Engine.Prune] removes images
// and volumes.
//
// # Boxes that outlive their program
//
// A box ends with its program, even one that is killed: boxd stops when nobody has come for
// Config.Linger, and the engine removes the container. A box made with Config.Keep stays, after
// [shellbox.Box.Detach] or whatever end its program had, until somebody closes it. [Engine.List]
// finds boxes, [Engine.Attach] takes one over, with its sessions, unfinished commands, and jobs
// with their logs. [Engine.Reap] removes what is left of containers that have ended.
//
// # Whom to trust
//
// boxd is process 1 and runs as the box's user. What runs in the box as that user, or as root, can
// send it signals, which the kernel does not let end process 1; it cannot read its memory nor trace
// it (boxd is not dumpable, and the container has no CAP_SYS_PTRACE), nor change its program (the
// volume is read-only; a box with CAP_SYS_ADMIN, which could change that, gets one of its own). It
// can connect to the socket, but is not served: boxd serves only processes that came into the
// container from outside, whose parent is in no namespace of the container. It can be such a
// process, by tracing a "boxd join" in its first moment, which is a cut too: it has neither the
// owner's key nor boxd's. It can send boxd SIGTERM or SIGINT, which stop the box as docker stop
// does; kill "boxd join", which is a cut like others; stop programs of the same user, or read and
// change their memory, terminals included, as on any machine; use up the container's memory,
// processes and disk; and print anything.
//
// So what is returned is what the box's programs made of it. A command's output and exit status
// come from the shell, and its commands come by a socket that no other program can open; so do the
// requests to what serves the files. But a program of the same user that may trace can read the
// shell's memory, take a copy of its descriptor (pidfd_getfd) and forge what the shell says, or put
// another shell in its place. Where a result counts (a score, a test), have programs that are not
// trusted run as another user of the box, or look at their files from outside, after the end.
//
// By default, programs in the container gain no privileges, root has the capabilities that a
// package manager needs and no others, and there is a limit on processes. Memory and processors are
// not limited, and the network is the engine's default: set what you need. The engine's socket
// cannot be mounted. As with any container, all of them share the engine's kernel; Runtime selects
// another runtime.
//
// Close removes the container with its anonymous volumes.
//
// [DockerSSHBox.SSHConfig] is for people: ssh, scp, sftp, rsync, git and editors reach the box with
// it.
//
// # A machine
//
// [Dial] logs in over TCP, or over any connection that DialConfig.DialContext makes, such as
// another sandbox's Dial:
//
//	box, err := sshbox.Dial(ctx, sshbox.DialConfig{Address: "build-1.example.com", User: "ci"})
//
// The host key is checked, always: against known_hosts as ssh does, or by DialConfig.HostKey. The
// server needs nothing but its defaults, and neither sftp nor forwarding. What runs in an SSHBox is
// limited by nothing but the account.
//
// Where the machine is Linux on amd64 or arm64, Dial brings boxd there, once per version (some 6
// MB): to DialConfig.Boxd, by default ~/.cache/sandshell. The login starts it, and it outlives the
// login: sessions and jobs are as in a container from then on, cuts included, for which the box
// logs in again, with the same DialConfig; what programs inherit (environment, umask, limits) is
// the login's. After Close nothing of it is left but the program, which [Machine.Prune] removes.
// If this program is killed, boxd ends after DialConfig.Linger with all that it has started, unless
// DialConfig.Keep says otherwise: then [Machine.Attach] takes the box over. If boxd is killed or
// the machine restarted, the box is lost; the next Dial, or [Machine.Reap], removes what is
// left.
//
// Elsewhere (macOS, another architecture, a home that is mounted noexec, no space) and with
// [NoBoxd] it is the plain way: each program is a session of the server's, which gets a second
// connection for the eleventh (OpenSSH's MaxSessions is 10); a cut ends the box. [SSHBox.Boxd]
// tells which it is and why.
//
// Whom to trust: boxd listens on a socket in a directory of mode 0700, and serves only processes of
// its own user, as the kernel tells them. Whoever is the same user can take the box over, which its
// owner learns of, or end it: also the programs that run in the box. Others can do neither. The
// directory for the program must be the user's own, and nobody else may be able to write to it; the
// program's checksum is compared before each start. With systemd's KillUserProcesses=yes, which is
// not its default, the end of a login ends boxd too: [SSHBox.Boxd] names it while it runs, and
// after a cut the box is lost, as when boxd is killed. "loginctl enable-linger" does not help, as
// boxd belongs to the login's scope; KillExcludeUsers of logind.conf does.
//
// # Concurrency and lifetimes
//
// All methods may be called from several goroutines. A context governs its call only. When the
// connection or the container is gone, calls return a *sandbox.LostError, which says why; a lost
// box stays lost, and Close of it still removes what is left. A paused container is not lost: calls
// wait until it goes on. Close ends all that goes on, waits for its goroutines, and can be called
// again.
//
// # Limits
//
// In an SSHBox without boxd, a program is started by the user's login shell, whichever it is, which
// becomes a POSIX shell, which becomes the program. On a terminal, arguments and environment
// together have to be shorter than about 100 KiB. OpenSSH tells the names of 13 signals only: a
// program that another one ended has the exit code 128.
//
// Whether a program waits for input, a script finds out there, which knows less than boxd. It sees
// who reads the terminal, who asks an epoll for it, and who selects descriptor 0 alone. Of any
// other poll or select it cannot see which descriptors it asks for (nc, telnet, ssh, Perl's and
// Ruby's select): in raw mode such a program counts as waiting after a quiet second, in line mode
// it does not. Nor does it find 32-bit programs, and those whose parent has ended (a gpg-agent's
// pinentry). For these there are Yield, Idle and Until.
package sshbox
