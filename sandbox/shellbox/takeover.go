package shellbox

import "github.com/sandshell/sandshell/sandbox/shellbox/proc"

// A takeover is what a fresh shell takes over from one that it replaces.
type takeover struct {
	dir string
	env []string
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
