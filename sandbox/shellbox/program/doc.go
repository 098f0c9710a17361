// Package program has what a shellbox.Host of one's own needs to start programs: a terminal, the
// program's path, typing.
//
// A Host that runs its programs by os/exec on this machine, be it in a chroot, as another user or
// through a tool such as bwrap, has all of it in four calls: [Command] finds the program; [Start]
// starts it on pipes, [StartOnTerminal] on a terminal, and [StartShell] on a terminal with a pipe
// for its commands. They return a [Process], which has the methods of a shellbox.Process; only Wait
// has to be put into a shellbox.Status. The example of package shellbox is such a Host.
//
// A Host that does not use os/exec finds the parts: [LookPath], [OpenTerminal], [OpenPipes]. One
// whose terminals are elsewhere, at the other end of a connection, needs a [Keyboard]. One that
// listens on this machine wraps its listeners in a [Listener].
//
// It works on Linux, macOS and the BSDs ([Supported]). On other systems, what starts programs or
// opens terminals returns errors.ErrUnsupported.
package program
