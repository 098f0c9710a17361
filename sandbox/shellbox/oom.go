package shellbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// oomKilled reports whether the host knows that the kernel has killed a process of p because memory
// had run out. since is as in hostapi.OOMTeller.
func (b *Box) oomKilled(p Process, since int64) bool {
	teller, ok := b.host.(hostapi.OOMTeller)
	if !ok {
		return false
	}
	n, _ := asked(b, "oom", func(ctx context.Context) (int64, error) {
		return teller.OOMKills(ctx, p, since)
	})
	return n > 0
}

// oomKilled reports the same for the time since c began; nil is the command under way. The shell
// has not been closed.
func (s *session) oomKilled(c *command) bool {
	s.mu.Lock()
	if c == nil {
		c = s.cmd
	}
	if c == nil || c.sh == nil || s.err != nil {
		s.mu.Unlock()
		return false
	}
	p, since := c.sh.proc, c.offset
	s.mu.Unlock()
	return s.box.oomKilled(p, since)
}

// mayBeOOM reports whether the host must be asked whether memory had run out: to ask takes as long
// as a fast command. A command that exits with 0 within quietMin is not asked about. The kernel
// takes longer to look for a victim, to kill it and to log that.
func (s *session) mayBeOOM(c *command, r *sandbox.Result) bool {
	_, tells := s.box.host.(hostapi.OOMTeller)
	return tells && (r.ExitCode != 0 || time.Since(c.began) > quietMin)
}
