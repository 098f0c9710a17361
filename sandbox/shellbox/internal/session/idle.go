package session

import (
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// An idleNote is what the next program has to know of a shell at its prompt.
type idleNote struct {
	Seq          int // of the last line, which the shell has answered
	Status       int
	Cwd          string
	Alternate    bool
	Bash, HighFD bool
	TTY          string
	Pipe, Image  string
	// Last is the number of a command whose result no call has returned, and LastResult the result
	// without its output. 0: there is none.
	Last       int             `json:",omitempty"`
	LastResult *sandbox.Result `json:",omitempty"`
}

// continueIdle continues a session that another program has left at its prompt.
func (s *Session) continueIdle(k hostapi.Kept, n Note) error {
	sh := s.shellOf(k, n)
	idle := n.Idle
	sh.pipe, sh.image, sh.statusStale = idle.Pipe, idle.Image, true
	sh.dialect.TTY, sh.dialect.Bash, sh.dialect.HighFD = idle.TTY, idle.Bash, idle.HighFD
	last := newCommand("", false)
	last.seq = idle.Last
	s.readIdleBacklog(k, last)
	s.mu.Lock()
	if idle.Last != 0 && idle.LastResult != nil {
		s.keepUnreportedLocked(last, idle.LastResult)
	}
	s.seq, s.lastAnswer, s.status, s.cwd = idle.Seq, idle.Seq, idle.Status, idle.Cwd
	s.alternate, s.lastEnd = idle.Alternate, time.Now()
	s.rows, s.cols = k.Rows, k.Cols
	s.runLocked(sh)
	s.mu.Unlock()
	if !s.adopt(sh) {
		s.mu.Lock()
		s.restarted = true
		s.mu.Unlock()
		return s.restart(sh.status.Code)
	}
	return nil
}

// keepUnreportedLocked keeps the result of a command of another program, for Wait.
func (s *Session) keepUnreportedLocked(c *command, r *sandbox.Result) {
	for _, e := range []phase.CommandEvent{phase.LineSent, phase.OutputBegan,
		phase.ShellReturned, phase.Finished} {
		s.advanceLocked(c, e)
	}
	c.completeLocked(nil)
	c.result, c.logged, s.unreported = r, true, c
}

// readIdleBacklog reads what the host has kept of the output of a session that is at its prompt. It
// goes to the screen. The output of the command last goes to that too.
func (s *Session) readIdleBacklog(k hostapi.Kept, last *command) {
	s.mu.Lock()
	sh := s.sh
	last.out.SetSize(k.Rows, k.Cols)
	s.mu.Unlock()
	prints := last.seq != 0 // its Begin marker may no longer be kept
	buf := make([]byte, 32<<10)
	for rest := k.Backlog; rest > 0; {
		n, err := sh.proc.Stdout().Read(buf[:min(rest, int64(len(buf)))])
		rest -= int64(n)
		sh.readBytes += int64(n)
		s.mu.Lock()
		for chunk := buf[:n]; len(chunk) > 0; {
			var text []byte
			var m *dialect.Marker
			text, m, chunk = sh.scan.Next(chunk)
			s.screen.Write(text)
			if prints {
				last.out.Write(text)
			}
			switch {
			case m == nil || last.seq == 0:
			case m.Kind == dialect.Begin && m.Seq <= last.seq,
				m.Kind == dialect.End && m.Seq < last.seq:
				last.out.Reset()
			case m.Kind == dialect.End:
				prints = false
			}
		}
		s.mu.Unlock()
		if err != nil {
			return // the terminal's reader finds out
		}
	}
}
