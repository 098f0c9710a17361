// Package shellbox makes a [sandbox.Sandbox] out of any [Host]. A Host is a place that can start
// processes, with or without a terminal, such as those of package localbox and package sshbox. For
// a place of your own, package program starts processes. The package example is a whole Host.
//
// # How it works
//
// A Box holds sessions and jobs by their ids, files, network, Runs and copies, and hands over to
// other programs.
//
// A session is an interactive shell (bash, dash, busybox ash or another POSIX shell) on a terminal
// of its own. The shell reads its commands from a pipe, which no program on the terminal has. A
// command is one line there: eval '<the command, quoted>' with the terminal as its standard input.
// Before and after the command the shell prints a marker on the terminal: an OSC 133 control
// sequence with the number of the command, its exit status, the directory and a nonce. The nonce
// belongs to this one command and is made of a secret of the shell. In each session one goroutine
// reads the terminal, takes the markers out, and hands on the rest, cleaned as a person would read
// it.
//
// Input that a command leaves unread on the terminal is dropped. After a command that is aborted
// the shell prints no marker. So the engine sends another line that only asks for the status, and
// the shell reads it when it is back.
//
// The shell differs from a person's shell as follows. exec <file lasts for its command only. An ERR
// trap runs once more, for eval. set -x shows one level more ("++"). A DEBUG trap runs for the
// markers too, unseen. PS1 and PS2 are not shown, and bash's PS1 is an invisible sequence.
//
// To find out whether a program waits for input, and which processes a command has left, the engine
// runs a plain sh without a terminal on the host: the control shell, which reads /proc and sends
// signals. Nothing is installed on the host. It needs only sh and, for what Linux can tell, /proc;
// stty, grep, tar and mkfifo are used where they exist. (The hosts of this module answer such
// questions themselves.)
//
// # Concurrency and lifetimes
//
// All methods of a Box may be called from several goroutines. A Box owns its Host: Close ends the
// sessions and jobs with all their processes, then closes the Host, and returns when no goroutine
// of the Box is left.
package shellbox
