// Package shellbox makes a [sandbox.Sandbox] out of any [Host]: a place that can start processes, with or without a
// terminal. Package localbox and package sshbox are such places. For a place of your own, package program starts processes, on
// a terminal too; the package example is a whole Host.
//
// # How it works
//
// A session is an interactive shell (bash, dash, busybox ash or another POSIX shell) on a terminal of its own. The shell's
// prompt is a marker that no output can imitate: an OSC 133 control sequence with the exit status, the number
// of the command, the directory and a secret of the session, which the shell itself expands. A command is typed as one line, eval
// '<the command, quoted>', or in pieces where it is longer than a terminal's line may be. One goroutine a session reads the
// terminal, takes the markers out, and hands on the rest, cleaned as a person would read it.
//
// The host says whether a quiet program waits for input, and which processes a command has left: by [Processes], in the types of package proc. On a
// host without Processes the engine runs a plain sh without a terminal, the control shell, which reads /proc and sends signals. Nothing is
// installed on the host. It needs only sh and, for Linux's answers, /proc; stty, grep and tar are used where they exist.
//
// # Concurrency and lifetimes
//
// All methods of a Box may be called from several goroutines. A Box owns its Host: Close ends the sessions and jobs with all their
// processes, then closes the Host, and returns when no goroutine of the Box is left.
package shellbox
