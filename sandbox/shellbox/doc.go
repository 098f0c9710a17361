// Package shellbox makes a [sandbox.Sandbox] out of any [Host]: a place that can start processes,
// with or without a terminal. Package localbox and package sshbox are such places. For a place of
// your own, package program starts processes, on a terminal too; the package example is a whole
// Host.
//
// # How it works
//
// A session is an interactive shell (bash, dash, busybox ash or another POSIX shell) on a terminal
// of its own. The shell reads its commands from a pipe, which no program on the terminal has. A
// command is one line there: eval '<the command, quoted>' with the terminal as its standard input.
// Before and after it the shell says a marker on the terminal: an OSC 133 control sequence with the
// number of the command, its exit status, the directory and a nonce, which is this one command's
// and made of a secret of the session. One goroutine a session reads the terminal, takes the
// markers out, and hands on the rest, cleaned as a person would read it.
//
// What a command leaves unread on the terminal is dropped. A command that is aborted says no last
// marker: the shell is asked for its status by another line, which it reads when it is back.
//
// A person's shell differs in this: exec <file lasts for its command only; a trap of ERR runs once
// more, for eval; set -x shows one level more ("++"); a DEBUG trap runs for the markers too,
// unseen; PS1 and PS2 are not shown, and bash's PS1 is an invisible sequence.
//
// To find out whether a program waits for input, and which processes a command has left, the engine
// runs a plain sh without a terminal on the host: the control shell, which reads /proc and sends
// signals. Nothing is installed on the host. It needs only sh and, for what Linux can tell, /proc;
// stty, grep, tar and mkfifo are used where they exist. (The hosts of this module answer such
// questions themselves, by interfaces of package internal/hostapi.)
//
// # Concurrency and lifetimes
//
// All methods of a Box may be called from several goroutines. A Box owns its Host: Close ends the
// sessions and jobs with all their processes, then closes the Host, and returns when no goroutine
// of the Box is left.
package shellbox
