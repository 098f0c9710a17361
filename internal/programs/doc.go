// Package programs starts programs on this machine: on pipes and on terminals, as this program's
// user or as another.
//
// [Command] finds a program, and [Start] starts it. What does not use os/exec finds the parts:
// [LookPath], [OpenTerminal], [OpenPipes]. A terminal at the other end of a connection needs a
// [Keyboard]. Listeners of a process that starts programs are wrapped in a [Listener].
//
// The package works on Linux, macOS and the BSDs ([Supported]). On other systems, functions that
// start programs or open terminals return errors.ErrUnsupported.
package programs
