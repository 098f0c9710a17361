package faulttest

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// faultsWithBoxd are those of a machine where boxd carries the boxes: no cut ends one.
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

// joined is the process on whose standard streams boxd is reached.
func joined(r *round) (pid string, err error) {
	for _, p := range marked(r.id) {
		// start stays for the first connection
		if strings.Contains(p.args, "boxd join ") || strings.Contains(p.args, " start -linger ") {
			return strconv.Itoa(p.pid), nil
		}
	}
	return "", errors.New("nobody has joined")
}

// serving is the process of sshd's that serves the connection.
func serving(r *round) (pid string, err error) {
	pid, err = joined(r)
	if err != nil {
		return "", err
	}
	out, err := exec.Command("ps", "-o", "ppid=", "-p", pid).Output()
	return strings.TrimSpace(string(out)), err
}
