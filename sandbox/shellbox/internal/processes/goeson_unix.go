//go:build unix

package processes

import "syscall"

// goesOn are the signals that end no process which has not asked for them.
var goesOn = []syscall.Signal{0, syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGSTOP,
	syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGURG, syscall.SIGWINCH}
