package shellbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// An OOMTeller is a Host that knows what the kernel has killed because memory had run out: its own
// count, of all its processes. By it the engine sets sandbox.Result.OOM.
type OOMTeller interface {
	Host
	// OOMKills returns how many processes of the host have been killed since the byte of that
	// offset was written to p.Commands, counted from this Process's begin; of -1, since the
	// program's start. p is a Process of this host's that has not been closed.
	OOMKills(ctx context.Context, p Process, since int64) (int64, error)
}

// oomKilled reports whether the kernel has killed since then because memory had run out, as far as
// the host knows.
func (b *Box) oomKilled(p Process, since int64) bool {
	teller, ok := b.host.(OOMTeller)
	if !ok {
		return false
	}
	n, _ := asked(b, "oom", func(ctx context.Context) (int64, error) {
		return teller.OOMKills(ctx, p, since)
	})
	return n > 0
}

// oomKilled reports the same, since the command began; nil is the one under way. Its shell has not
// been closed yet.
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

// mayBeOOM reports whether the host is to be asked how a command has ended: to ask takes as long as
// a fast command. Nothing that went well is over in so short a time after the kernel has looked for
// a victim, killed it, and logged that.
func (s *session) mayBeOOM(c *command, r *sandbox.Result) bool {
	_, tells := s.box.host.(OOMTeller)
	return tells && (r.ExitCode != 0 || time.Since(c.began) > quietMin)
}
