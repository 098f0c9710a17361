package shellbox

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// killTick is how often kill looks at what is in the foreground.
const killTick = 50 * time.Millisecond

// kill ends the command as a person would, then harder, and returns when the command and what descends from it are gone, or the
// session is. What is in the foreground gets the interrupt key, SIGTERM and SIGKILL, each Options.Grace after the other; a command
// may start another program when one has ended, which is treated likewise, but not for ever.
func (s *session) kill(c *command) {
	s.mu.Lock()
	if c.result != nil {
		s.mu.Unlock()
		return
	}
	s.killed = true
	shell, background, typist := s.pid, s.background, s.typist
	s.mu.Unlock()

	// Whom the interrupt key orphans is no longer found below the shell: look before.
	family := s.box.family(shell, c.began, background)
	grace := s.box.opts.Grace
	first := time.Now()
	since, step, last := first, 0, -1
	for {
		foreground, turns, raw := s.box.foreground(shell)
		if foreground != last && time.Since(first) < 4*grace {
			since, step, last = time.Now(), 0, foreground
		}
		// Each step has its time from when the one before was taken: where looking takes long, the shell would be killed as soon as its program.
		switch quiet := time.Since(since); {
		case step == 0:
			s.mu.Lock()
			c.turns = turns
			s.mu.Unlock()
			typist.interrupt([]byte{3})
			if raw { // the key is but a byte to a program in raw mode
				s.box.signalForeground(shell, "INT")
			}
			step = 1
		case step == 1 && quiet > grace/2: // as a person would: a shell between two programs may have missed it
			typist.interrupt([]byte{3})
			since, step = time.Now(), 2
		case step == 2 && quiet > grace/2:
			family = merge(family, s.box.family(shell, c.began, background))
			s.box.signal(without(family, shell), "TERM")
			since, step = time.Now(), 3
		case step == 3 && quiet > grace:
			family = merge(family, s.box.family(shell, c.began, background))
			s.box.signal(without(family, shell), "KILL")
			since, step = time.Now(), 4
		case step == 4 && quiet > grace: // it is the shell itself that does not come back
			s.box.log.Warn("killing the shell: it does not come back from a command", "session", s.id)
			s.box.do("send KILL " + itoa(s.shellPID()))
			since = time.Now()
		}
		tick := time.NewTimer(killTick)
		select {
		case <-c.done:
			tick.Stop()
			s.box.finish(without(merge(family, s.box.family(shell, c.began, background)), shell), min(grace, 200*time.Millisecond))
			s.tidy()
			return
		case <-s.gone:
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// tidy puts the terminal in order after a program that was killed while it had it in raw mode or without echo. bash does so itself.
func (s *session) tidy() {
	s.mu.Lock()
	pid, dialect := s.pid, s.shell.dialect
	s.mu.Unlock()
	if dialect == bash {
		return
	}
	for _, p := range s.box.tree(pid) {
		if m := s.box.modes(p.tty); p.pid == pid && m.known && (m.raw || !m.echo && dialect != ash) {
			s.box.do("sane " + itoa(p.tty))
		}
	}
}

// family returns the processes of the command that began then: what is below the shell, without the children that earlier commands
// left in the background. Those were started before the command or, as far as the clock's ticks tell no
// difference, have an id not greater than background, the shell's $! at the time.
func (b *Box) family(shell int, began time.Time, background int) []process {
	ps := b.tree(shell)
	now, err := b.uptime()
	begin := int64((now - time.Since(began).Seconds()) * 100)
	earlier := map[int]bool{}
	var family []process
	for _, p := range ps { // parents come before children
		foreground := p.pgrp == p.tpgid
		old := err == nil && p.start < begin-2 || err == nil && p.start <= begin+2 && p.pid <= background
		if earlier[p.ppid] || p.ppid == shell && old && !foreground {
			earlier[p.pid] = true
			continue
		}
		family = append(family, p)
	}
	return family
}

// uptime returns the seconds since the start of the host.
func (b *Box) uptime() (float64, error) {
	up, _ := b.do("uptime")
	return strconv.ParseFloat(strings.TrimSpace(up), 64)
}

// foreground returns the foreground process group of the shell's terminal, 0 if unknown; how often the shell has run, if it is in
// the foreground; and whether the terminal is in raw mode.
func (b *Box) foreground(shell int) (pgrp int, turns string, raw bool) {
	for _, p := range b.tree(shell) {
		if p.pid != shell {
			continue
		}
		for _, t := range p.threads {
			if t.tid == shell {
				turns = t.turns
			}
		}
		return p.tpgid, turns, b.modes(p.tty).raw
	}
	return 0, "", false
}

// signalForeground sends the signal, a name or number, to the foreground process group of the shell's terminal, without forks of the
// shell itself, such as the subshell that a job is run in; but to these, or to the shell, if there is nothing else.
func (b *Box) signalForeground(shell int, sig string) error {
	var programs, forks []process
	var code string
	for _, p := range b.tree(shell) {
		switch {
		case p.pid == shell:
			code = p.startcode
			if p.pgrp == p.tpgid {
				forks = append(forks, p)
			}
		case p.pgrp != p.tpgid:
		case p.startcode == code && code != "0":
			forks = append(forks, p)
		default:
			programs = append(programs, p)
		}
	}
	if len(programs) == 0 {
		programs = forks
	}
	if len(programs) == 0 {
		return os.ErrProcessDone
	}
	out, err := b.do("send " + sig + ids(programs))
	if err == nil && out == "" {
		return errors.New("the processes may not be signalled, or have just ended")
	}
	return err
}

func ids(ps []process) string {
	var s strings.Builder
	for _, p := range ps {
		s.WriteString(" " + itoa(p.pid))
	}
	return s.String()
}

// signal sends the signals of these names to those of ps that are still what they were.
func (b *Box) signal(ps []process, names ...string) {
	if ps = b.alive(ps); len(ps) == 0 {
		return
	}
	b.do("send " + strings.Join(names, ",") + ids(ps))
}

// alive returns those of ps that have not ended; zombies have.
func (b *Box) alive(ps []process) []process {
	if len(ps) == 0 {
		return nil
	}
	out, err := b.do("alive" + ids(ps))
	if err != nil {
		return nil
	}
	now := map[int]process{}
	for _, p := range parseProcesses(out) {
		now[p.pid] = p
	}
	var alive []process
	for _, p := range ps {
		if q, ok := now[p.pid]; ok && q.start == p.start && !strings.HasPrefix(q.state, "Z") && !strings.HasPrefix(q.state, "X") {
			alive = append(alive, p)
		}
	}
	return alive
}

// finish ends those of ps that are left, softly for the time of grace, and returns when they are gone.
func (b *Box) finish(ps []process, grace time.Duration) {
	if ps = b.alive(ps); len(ps) == 0 {
		return
	}
	b.signal(ps, "HUP", "TERM", "CONT") // interactive shells ignore TERM
	begin := time.Now()
	for pause := time.Millisecond; len(ps) > 0 && time.Since(begin) < grace+10*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		if time.Since(begin) >= grace {
			b.signal(ps, "KILL")
		}
		time.Sleep(pause)
		ps = b.alive(ps)
	}
	if len(ps) > 0 {
		b.log.Warn("processes survive SIGKILL: another user's, or stuck in the kernel", "first", ps[0].pid, "number", len(ps))
	}
}

// killTree ends pid and what descends from it.
func (b *Box) killTree(pid int) {
	b.finish(b.tree(pid), 100*time.Millisecond)
}

// killMarked ends all processes that have mark in their environment, and what descends from them.
func (b *Box) killMarked(mark string) {
	for range 3 { // one may have forked meanwhile
		out, err := b.do("marked " + mark)
		if err != nil {
			return
		}
		found := strings.TrimSpace(out)
		if found == "" {
			return
		}
		out, err = b.do("tree " + found)
		if err != nil {
			return
		}
		ps := parseProcesses(out)
		b.finish(ps, 100*time.Millisecond)
		if len(ps) == 1 {
			return // a shell that did nothing
		}
	}
}

func merge(a, b []process) []process {
	seen := map[int]bool{}
	var all []process
	for _, p := range append(append([]process(nil), a...), b...) {
		if !seen[p.pid] {
			seen[p.pid] = true
			all = append(all, p)
		}
	}
	return all
}

func without(ps []process, pid int) []process {
	var rest []process
	for _, p := range ps {
		if p.pid != pid {
			rest = append(rest, p)
		}
	}
	return rest
}
