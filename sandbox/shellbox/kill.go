package shellbox

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// kill ends the command as a person would, then harder, and returns when the command and what descends from it are gone, or the
// session is. The steps are the interrupt key, SIGTERM, SIGKILL, each after Options.Grace.
func (s *session) kill(c *command) {
	s.mu.Lock()
	again := c.kills > 0
	c.kills++
	shellPID, background, typist := s.pid, s.background, s.typist
	elapsed := time.Since(c.began)
	s.mu.Unlock()

	// Whom the interrupt key orphans is no longer found below the shell: look before.
	family := s.box.family(shellPID, elapsed, background)
	ended := func(d time.Duration) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-c.done:
		case <-s.gone:
		case <-t.C:
			return false
		}
		return true
	}
	grace := s.box.opts.Grace
	typist.interrupt([]byte{3})
	done := ended(min(grace, 100*time.Millisecond))
	if !done && s.box.rawMode(shellPID) { // the key is but a byte to a program in raw mode
		s.box.signalForeground(shellPID, "INT")
	}
	if !done && !again {
		done = ended(grace)
	}
	if !done {
		family = merge(family, s.box.family(shellPID, elapsed+grace, background))
		s.box.signal(without(family, shellPID), "TERM")
		done = ended(grace)
	}
	if !done {
		family = merge(family, s.box.family(shellPID, elapsed+2*grace, background))
		s.box.signal(without(family, shellPID), "KILL")
		done = ended(grace)
	}
	for !done { // it is the shell itself that does not come back
		s.box.log.Warn("killing the shell: it does not come back from a command", "session", s.id)
		s.mu.Lock()
		shellPID = s.pid
		s.mu.Unlock()
		s.box.signalPID(shellPID, "KILL")
		done = ended(5 * time.Second)
	}
	s.box.finish(without(merge(family, s.box.family(shellPID, elapsed+3*grace, background)), shellPID), min(grace, 200*time.Millisecond))
}

// family returns the command's processes: what is below the shell, without the children that earlier commands left in the
// background. Those started before the command did, elapsed ago, or, as far as the clock's ticks tell no
// difference, have an id not greater than background, the shell's $! at the time.
func (b *Box) family(shell int, elapsed time.Duration, background int) []process {
	ps := b.tree(shell)
	up, _ := b.control.do("uptime")
	now, err := strconv.ParseFloat(strings.TrimSpace(up), 64)
	begin := int64((now - elapsed.Seconds()) * 100)
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

// signalForeground sends the signal, a name or number, to the foreground process group of the shell's terminal; the shell alone if that is it.
func (b *Box) signalForeground(shell int, sig string) error {
	for _, p := range b.tree(shell) {
		if p.pid != shell {
			continue
		}
		target := " " + itoa(shell)
		if p.tpgid > 1 && p.tpgid != p.pgrp {
			target = " -" + itoa(p.tpgid)
		}
		out, err := b.control.do("kill -" + sig + target + " || echo failed")
		if err == nil && out != "" {
			return errors.New("the processes may not be signalled, or have just ended")
		}
		return err
	}
	return os.ErrProcessDone
}

func (b *Box) rawMode(shell int) bool {
	for _, p := range b.tree(shell) {
		if p.pid == shell {
			return b.modes(p.tty).raw
		}
	}
	return false
}

func (b *Box) signalPID(pid int, sig string) {
	if pid > 1 {
		b.control.do("kill -" + sig + " " + itoa(pid))
	}
}

// signal sends the signal of that name to those of ps that are still what they were.
func (b *Box) signal(ps []process, sig string) {
	if ps = b.alive(ps); len(ps) == 0 {
		return
	}
	var ids strings.Builder
	for _, p := range ps {
		ids.WriteString(" " + itoa(p.pid))
	}
	b.control.do("for _p in" + ids.String() + "; do kill -" + sig + " $_p; done")
}

// alive returns those of ps that have not ended; zombies have.
func (b *Box) alive(ps []process) []process {
	if len(ps) == 0 {
		return nil
	}
	out, err := b.control.do("table")
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
	for _, sig := range []string{"HUP", "TERM", "CONT"} { // interactive shells ignore TERM
		b.signal(ps, sig)
	}
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
	for range 3 { // a process may have forked meanwhile
		out, err := b.control.do("marked " + mark)
		if err != nil {
			return
		}
		ids := strings.TrimSpace(out)
		if ids == "" {
			return
		}
		out, err = b.control.do("tree " + ids)
		if err != nil {
			return
		}
		b.finish(parseProcesses(out), 100*time.Millisecond)
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
