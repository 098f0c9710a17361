// Package shellbox makes a [sandbox.Sandbox] out of any [Host]: a place that can start processes, with or without a
// terminal. Package localbox and package sshbox are such places. For one of your own, package program has the terminal and what else starting
// processes takes; the package example is a whole Host.
//
// # How it works
//
// A session is an interactive shell (bash, dash, busybox ash or another POSIX shell) on a terminal of its own. The shell's
// prompt is a marker that no output can imitate: an OSC 133 control sequence with the exit status, the number
// of the command, the directory and a secret of the session, which the shell itself expands. A command is typed as one line, eval
// '<the command, quoted>', or in pieces where it is longer than a terminal's line may be. One goroutine a session reads the
// terminal, takes the markers out, and hands on the rest, cleaned as a person would read it.
//
// Whether a quiet program waits for input, and which processes a command has left, the host says: by [Processes], in the types of package proc. For a
// host without Processes, one plain sh without a terminal, the control shell, looks into /proc and delivers signals. Nothing is installed on
// the host, and nothing but sh and, for Linux's answers, /proc is needed on it; stty, grep and tar are used where there are any.
//
// # Concurrency and lifetimes
//
// All methods of a Box may be called from several goroutines. A Box owns its Host: Close ends the sessions and jobs with all their
// processes, then closes the Host, and returns when no goroutine of the Box is left.
package shellbox
