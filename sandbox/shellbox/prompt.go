package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// A prompt is lost if the shell is at it and no marker has said so, or if the shell has not taken the command's lines there.

// ask asks the shell at a lost prompt for its status, and gives it our prompt back; s.mu is held.
func (s *session) ask(c *command) {
	if !c.asked {
		s.box.log.Info("prompt lost: giving the shell its prompt back", "session", s.id, "command", abridged(c.text))
	}
	c.asked = true
	c.active = time.Now()
	if s.givesUp(c) {
		return
	}
	s.typist.write(s.shell.initLines(s.seq))
}

// retype puts the terminal in order and has the command's lines typed again: an earlier command has left the terminal in a state in which no line
// can be ended (stty inlcr). The interrupt key takes back what the shell may have got of the lines. The lines are typed at the shell's next prompt,
// or at the next look: until then bash may still act on the key, even after it has read another line. s.mu is held.
func (s *session) retype(c *command) {
	c.active = time.Now()
	if s.givesUp(c) {
		return
	}
	if c.again {
		s.again(c)
		return
	}
	c.again = true
	s.box.log.Info("lines not taken: putting the terminal in order", "session", s.id, "command", abridged(c.text))
	pid, typist := s.pid, s.typist
	s.readers.Go(func() {
		if shell, _ := s.box.treeOf(pid); shell != nil {
			s.box.resetModes(shell.TTY)
		}
		typist.interrupt([]byte{3})
	})
}

// again types the lines again; s.mu is held.
func (s *session) again(c *command) {
	s.typist.write(c.lines)
	c.again = false
}

// givesUp counts the attempts to get through to the shell. At the fourth it kills the shell, which no longer takes any command (set -n). s.mu is held.
func (s *session) givesUp(c *command) bool {
	if c.attempts++; c.attempts <= 3 {
		return false
	}
	s.box.log.Warn("killing the shell: it takes no commands any more", "session", s.id)
	pid := s.pid
	s.readers.Go(func() { s.box.send([]int{pid}, proc.SIGKILL) })
	return true
}

// learn remembers the shell's read at its prompt. The shell reads a few microseconds after it has printed its prompt; on a busy machine, later.
func (s *session) learn() {
	pid := s.shellPID()
	for pause, begin := time.Millisecond, time.Now(); time.Since(begin) < 2*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		shell, _ := s.box.treeOf(pid)
		if shell == nil {
			return
		}
		s.mu.Lock()
		s.image, s.prompt = shell.Image, proc.Call{}
		s.mu.Unlock()
		for i := range shell.Threads {
			if t := &shell.Threads[i]; reads(t) || polls(t) {
				s.mu.Lock()
				s.prompt = readOf(t)
				s.mu.Unlock()
				return
			}
		}
		select {
		case <-s.gone:
			return
		case <-time.After(pause):
		}
	}
}
