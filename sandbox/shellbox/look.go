package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// A scene is the state of the session before a look.
type scene struct {
	pid       int           // the shell's
	image     string        // the shell's; "": unknown
	prompt    proc.Call     // the shell's read at its prompt; the zero Call: unknown
	unstarted bool          // the command's lines are typed, and the shell has not begun it
	partial   bool          // the output ends with an unfinished line
	quiet     time.Duration // since the last output or input
	turns     int64         // how often the shell had run when it got the interrupt key; 0: it has got none
}

func (s *session) scene() scene {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := scene{pid: s.pid, image: s.image, prompt: s.prompt}
	if c := s.cmd; c != nil {
		now.unstarted = c.typed && !c.started
		now.partial = len(c.out.cleaner.Line()) > 0
		now.quiet = time.Since(c.active)
		now.turns = c.turns
	}
	return now
}

// look looks once. If confirm is set, it asks for the terminal's modes too.
func (s *session) look(confirm bool) verdict {
	now := s.scene()
	at := time.Now()
	shell, ps := s.box.treeOf(now.pid)
	v, decided := verdict{}, shell == nil
	if shell != nil && shell.Group == shell.Foreground { // a builtin, a lost prompt, or the program that the shell has become by exec
		for i := range shell.Threads {
			if t := &shell.Threads[i]; reads(t) || polls(t) {
				v, decided = s.box.shellWaits(now, shell, t, confirm), true
				break
			}
		}
	}
	if !decided && !now.unstarted {
		at = time.Now()
		v = s.box.reader(now, ps, shell.TTY, confirm)
	}
	v.at, v.took = at, time.Since(at)
	return v
}

// settle waits until the shell and its programs have been given the input so far, and their output so far has been read.
func (s *session) settle() {
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	s.box.settle(p)
}

// shellWaits says what the shell waits for when the shell itself is in the foreground. Its thread t is blocked in a read or a poll.
func (b *Box) shellWaits(now scene, shell *proc.Process, t *proc.Thread, confirm bool) (v verdict) {
	exec := now.image != "" && now.image != shell.Image
	atPrompt := !exec && now.prompt != (proc.Call{}) && readOf(t) == now.prompt
	ran := now.turns != 0 && t.Turns != now.turns // since the interrupt key, which ends whatever read a builtin
	switch {
	case now.unstarted:
		if atPrompt || polls(t) && b.modes(shell.TTY).Raw { // raw: a line editor
			// A shell that takes line after line is not stuck: its turns tell.
			v.stuck, v.identity = true, identity{pid: shell.PID, tid: t.ID, turns: t.Turns}
		}
		return v
	case atPrompt, exec && isShell(shell.Name), !exec && ran:
		v.prompt = true
		return v
	}
	kind := sandbox.Line
	if confirm {
		kind = kindOf(b.modes(shell.TTY))
	}
	if !exec || !polls(t) || kind == sandbox.Keys {
		v.identity = identity{shell.PID, t.ID, t.Turns, kind}
	}
	return v
}

// reader finds the process that reads the terminal tty.
func (b *Box) reader(now scene, ps []proc.Process, tty int, confirm bool) (v verdict) {
	var poller, hidden *proc.Process
	var pollThread *proc.Thread
	works, turns := false, int64(0) // of all processes in the foreground
	for i := range ps {
		p := &ps[i]
		if p.TTY != tty || p.Group != p.Foreground {
			continue
		}
		works = works || runs(p)
		for j := range p.Threads {
			t := &p.Threads[j]
			turns += t.Turns
			switch {
			case reads(t), isShell(p.Name) && pollsOne(t):
				v.identity = identity{p.PID, t.ID, t.Turns, sandbox.Line}
				if confirm {
					v.kind = kindOf(b.modes(tty))
				}
				return v
			case polls(t):
				poller, pollThread = p, t
			case unseen(t) && p.State != "R":
				hidden = p
			}
		}
	}
	if poller == nil && hidden == nil {
		return v
	}
	m := b.modes(tty)
	// A relay (sudo with use_pty, script, expect) has the terminal in raw mode and runs its program on another terminal: look at
	// that one.
	if m.Raw {
		for i := range ps {
			if p := &ps[i]; p.TTY != tty && p.TTY != 0 && p.Group == p.Foreground {
				return b.reader(now, ps, p.TTY, confirm)
			}
		}
	}
	switch {
	case poller != nil && m.Raw && b.forks(ps, poller):
	case poller != nil && m.Raw:
		v.identity = identity{poller.PID, pollThread.ID, pollThread.Turns, sandbox.Keys}
	case hidden == nil:
	case m.Known && !m.Raw && m.NoEcho:
		// Another user's process, which /proc does not show us (sudo, passwd): it has turned the echo off.
		v.identity = identity{hidden.PID, hidden.PID, turns, sandbox.Secret}
	case now.partial && now.quiet > unanswered && !works && poller == nil:
		// Another user's process: the only signs are an unfinished line, silence, and that no process works. If we see a process that polls, it waits
		// for something else, as apt-get waits for its downloads, and the hidden processes work for it.
		v.identity, v.guess = identity{hidden.PID, hidden.PID, turns, kindOf(m)}, true
	}
	return v
}

// forks reports whether the process has just forked and its child has not yet called exec. A relay looks like that before its program
// is on its own terminal.
func (b *Box) forks(ps []proc.Process, parent *proc.Process) bool {
	for i := range ps {
		if p := &ps[i]; p.Parent == parent.PID && p.Image == parent.Image && runs(p) {
			up := b.uptime()
			return up > 0 && p.Start > int64((up-time.Second).Seconds()*proc.TicksPerSecond)
		}
	}
	return false
}

// runs reports whether the process runs, is about to, or waits for a disk.
func runs(p *proc.Process) bool { return p.State == "R" || p.State == "D" }

// kindOf says what a program that reads a terminal in these modes waits for.
func kindOf(m proc.Modes) sandbox.InputKind {
	switch {
	case m.Raw:
		return sandbox.Keys
	case m.NoEcho:
		return sandbox.Secret
	}
	return sandbox.Line
}
