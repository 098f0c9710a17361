// Package inspect answers the engine's questions about processes and terminals without a shell, out of Linux's /proc. The questions
// and the answers are those of sandbox/shellbox/control.sh, which describes them.
package inspect

import (
	"fmt"
	"strconv"
	"strings"
)

// Answer answers a request about this machine. It may be called from several goroutines. The error is errors.ErrUnsupported on
// other systems than Linux; else it says that the request is none: what cannot be found out is only left out of the answer.
func Answer(request string) (answer string, err error) {
	if answer, err = answerTo(request); err != nil {
		return "", fmt.Errorf("inspect %.60q: %w", request, err)
	}
	return answer, nil
}

func answerTo(request string) (string, error) {
	words := strings.Fields(request)
	if len(words) == 0 {
		return "", fmt.Errorf("it is empty")
	}
	name, words := words[0], words[1:]
	count := map[string]int{"marked": 1, "modes": 1, "sane": 1, "uptime": 0}
	if n, fixed := count[name]; fixed && n != len(words) {
		return "", fmt.Errorf("it has %d words behind its name, want %d", len(words), n)
	}
	switch name {
	case "tree", "alive":
		pids, err := processIDs(words)
		if err != nil {
			return "", err
		}
		if name == "tree" {
			return tree(pids)
		}
		return alive(pids)
	case "marked":
		return marked(words[0])
	case "modes", "sane":
		tty, err := strconv.ParseUint(words[0], 10, 32)
		if err != nil {
			return "", fmt.Errorf("no terminal's number: %q", words[0])
		}
		if name == "modes" {
			return modes(tty)
		}
		return sane(tty)
	case "uptime":
		return uptime()
	case "send":
		if len(words) == 0 {
			return "", fmt.Errorf("it names no signals")
		}
		pids, err := processIDs(words[1:])
		if err != nil {
			return "", err
		}
		return send(strings.Split(words[0], ","), pids)
	}
	return "", fmt.Errorf("no request: %q", name)
}

// processIDs returns the ids that the words are. 0 and less are none: to kill they mean process groups, our own among them.
func processIDs(words []string) ([]int, error) {
	pids := make([]int, len(words))
	for i, word := range words {
		pid, err := strconv.ParseInt(word, 10, 32)
		if err != nil || pid <= 0 {
			return nil, fmt.Errorf("no process id: %q", word)
		}
		pids[i] = int(pid)
	}
	return pids, nil
}
