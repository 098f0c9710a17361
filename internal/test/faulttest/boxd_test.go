package faulttest

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// faultsWithBoxd returns the faults of a machine with boxd. A cut ends no box there.
func (m *machine) faultsWithBoxd() []fault {
	return append(append(transportFaults(""), delayed, unplugged),
		fault{name: "shells killed", kills: true, do: kill("bash")},
		fault{name: "programs killed", kills: true, do: kill("seq", "sleep", "cat", "sha256sum",
			"find")},
		fault{name: "join killed", cuts: true, do: signalled("KILL", joined)},
		fault{name: "sshd killed", cuts: true, do: signalled("KILL", serving)},
		fault{name: "sshd paused", cuts: true, do: paused(serving)},
		fault{name: "sshd restarted", cuts: true, restarts: true,
			do: func(r *round, _ *rand.Rand) error {
				r.server.Restart(r.t)
				return nil
			}},
		fault{name: "boxd paused", cuts: true, do: paused(parent)},
		fault{name: "boxd killed", cause: sandbox.LostRemoved, cuts: true, kills: true,
			do: signalled("KILL", parent)})
}

// joined returns the process whose standard streams are the connection to boxd.
func joined(r *round) (pid string, err error) {
	for _, p := range marked(r.id) {
		// The first connection is that of boxd start.
		if strings.Contains(p.args, "boxd join ") || strings.Contains(p.args, " start -linger ") {
			return strconv.Itoa(p.pid), nil
		}
	}
	return "", errors.New("nobody has joined")
}

// serving returns the sshd process that serves the connection.
func serving(r *round) (pid string, err error) {
	pid, err = joined(r)
	if err != nil {
		return "", err
	}
	out, err := exec.Command("ps", "-o", "ppid=", "-p", pid).Output()
	return strings.TrimSpace(string(out)), err
}
