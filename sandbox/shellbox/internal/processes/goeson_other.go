//go:build !unix

package processes

import "syscall"

// goesOn are the signals that end no process which has not asked for them, by their numbers on
// Linux (signal(7)): CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH. Package syscall does not name
// them on this system.
var goesOn = []syscall.Signal{0, 17, 18, 19, 20, 21, 22, 23, 28}
