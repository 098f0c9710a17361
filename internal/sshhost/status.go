package sshhost

import (
	"errors"

	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// errNoStatus says that the server closed the channel without an exit status.
var errNoStatus = errors.New("the server sent no exit status")

// signals maps signals' names to Linux's numbers. It has the names of RFC 4254, section 6.10, and
// those that other servers are known to send. OpenSSH sends the thirteen names of the RFC, and
// "SIG@openssh.com" for any other signal.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12,
	"PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "STOP": 19, "TSTP": 20, "XCPU": 24,
	"XFSZ": 25, "VTALRM": 26, "PROF": 27,
	"IO": 29, "PWR": 30, "SYS": 31,
}

// parseStatus parses the request by which a server says how a program ended. If the signal's name
// is unknown, Code is 128 and Signal is -1.
func parseStatus(r *ssh.Request) (shellbox.Status, bool) {
	switch r.Type {
	case "exit-status":
		var m struct{ Status uint32 }
		if ssh.Unmarshal(r.Payload, &m) != nil {
			return shellbox.Status{}, false
		}
		return shellbox.Status{Code: int(m.Status)}, true
	case "exit-signal":
		var m struct {
			Signal     string
			CoreDumped bool
			Message    string
			Language   string
		}
		if ssh.Unmarshal(r.Payload, &m) != nil {
			return shellbox.Status{}, false
		}
		n, known := signals[m.Signal]
		if !known {
			return shellbox.Status{Code: 128, Signal: -1}, true
		}
		return shellbox.Status{Code: 128 + n, Signal: n}, true
	}
	return shellbox.Status{}, false
}
