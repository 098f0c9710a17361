package shellbox

import (
	"path"
	"strings"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// A takeover is what a fresh shell takes over from one that it replaces.
type takeover struct {
	dir string
	env []string
}

// interactive reports whether these are the arguments of an interactive shell that reads its
// commands from the terminal.
func interactive(args []string) bool {
	if len(args) > 1 && path.Base(args[0]) == "busybox" {
		args = args[1:]
	}
	if len(args) == 0 {
		return false
	}
	switch strings.TrimPrefix(path.Base(args[0]), "-") {
	case "bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "fish":
	default:
		return false
	}
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--rcfile" || arg == "--init-file" || arg == "-o" || arg == "+o" ||
			arg == "-O" || arg == "+O":
			i++
		case strings.HasPrefix(arg, "--"):
		case !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+"),
			strings.Contains(arg, "c"):
			return false
		}
	}
	return true
}

// takes has the interactive shell that exec has put in the place of ours replaced by a fresh one,
// with its directory and its environment; s.mu is held.
func (s *session) takes(sh *shell) {
	if sh.takeover != nil {
		return
	}
	sh.takeover = &takeover{}
	s.readers.Go(func() {
		dir, env := s.box.program(sh.pid)
		s.mu.Lock()
		sh.takeover.dir, sh.takeover.env = dir, env
		s.mu.Unlock()
		s.box.send([]int{sh.pid}, proc.SIGKILL)
	})
}
