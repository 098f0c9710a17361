// Package session is a sandbox's sessions. Each is a shell on a terminal, with one command under
// way at a time. A job is a command in a session of its own, which may have pipes and no terminal.
//
// A sandbox makes a [Box] once, which says what sessions need of it, and then sessions by [New]. It
// calls their exported methods, and they call the functions of the Box. Neither knows more of the
// other.
//
// The ways through the files are
//
//	a shell      start.go startenv.go greet.go shell.go; restart.go when it ends
//	a command    execute.go command.go finish.go; resume.go input.go for an unfinished one
//	a call       call.go waits for a command for one caller, question.go weighs its question
//	output       terminal.go reads the terminal; screen.go shows it
//	looks        watch.go looks while a call waits; kill.go ends a command
//	a job        job.go jobstatus.go; pipes.go: on pipes
//	programs     note.go attach.go: what another program finds; renew.go: a copy is not the same;
//	             turn.go idle.go interrupt.go: several at a time
//	the end      close.go
//
// Session.mu guards a session, its command and its shell: functions whose name ends in Locked need
// it. It is never held while the host is asked. Each goroutine of a session is one of
// Session.readers, for which Release waits.
package session
