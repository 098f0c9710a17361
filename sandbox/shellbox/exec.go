package shellbox

import "github.com/sandshell/sandshell/internal/hostapi/proc"

// An inheritance is what a fresh shell takes over from one that it replaces.
type inheritance struct {
	dir string
	env []string
}

// replaceExecedLocked replaces an interactive shell that exec has put in the place of ours by a
// fresh one, with its directory and environment.
func (s *session) replaceExecedLocked(sh *shell) {
	if sh.inherited != nil {
		return
	}
	sh.inherited = &inheritance{}
	s.readers.Go(func() {
		dir, env := s.box.program(sh.pid)
		s.mu.Lock()
		sh.inherited.dir, sh.inherited.env = dir, env
		s.mu.Unlock()
		s.box.send([]int{sh.pid}, proc.SIGKILL)
	})
}
