package shellbox

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// killTick is how often kill looks at what is in the foreground.
const killTick = 50 * time.Millisecond

// patientPrograms is how many programs of a command are ended softly, one after the other, however long each takes.
const patientPrograms = 3

// kill ends the command as a person would, then harder. It returns when the command and its descendants are gone, or the session
// is. The foreground gets the interrupt key, SIGTERM and SIGKILL, each Options.Grace after the other. If the command then starts
// another program, that one is treated likewise, but not for ever.
func (s *session) kill(c *command) {
	s.mu.Lock()
	if c.result != nil {
		s.mu.Unlock()
		return
	}
	s.killed = true
	shell, background, typist := s.pid, s.background, s.typist
	s.mu.Unlock()

	// Look before the interrupt key: a process that it orphans is no longer below the shell.
	family := s.box.family(shell, c.began, background)
	grace := s.box.opts.Grace
	first := time.Now()
	since, step, last, programs := first, 0, -1, 0
	for {
		foreground, turns, raw := s.box.foreground(shell)
		if foreground != last && (programs < patientPrograms || time.Since(first) < 4*grace) {
			since, step, last = time.Now(), 0, foreground
			programs++
		}
		// Each step has its time from when the one before was taken: where looking takes long, the shell would be killed as soon as its program.
		switch quiet := time.Since(since); {
		case step == 0:
			s.mu.Lock()
			c.turns = turns
			s.mu.Unlock()
			typist.interrupt([]byte{3})
			if raw { // in raw mode the key is an ordinary byte
				s.box.signalForeground(shell, proc.SIGINT)
			}
			step = 1
		case step == 1 && quiet > grace/2: // as a person would: a shell between two programs may have missed it
			typist.interrupt([]byte{3})
			since, step = time.Now(), 2
		case step == 2 && quiet > grace/2:
			family = merge(family, s.box.family(shell, c.began, background))
			s.box.signal(without(family, shell), proc.SIGTERM)
			since, step = time.Now(), 3
		case step == 3 && quiet > grace:
			family = merge(family, s.box.family(shell, c.began, background))
			s.box.signal(without(family, shell), proc.SIGKILL)
			since, step = time.Now(), 4
		case step == 4 && quiet > grace: // the shell itself does not come back
			s.box.log.Warn("killing the shell: it does not come back from a command", "session", s.id)
			s.box.send([]int{s.shellPID()}, proc.SIGKILL)
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

// tidy puts the terminal in order after a killed program that had set raw mode or switched the echo off. bash does so itself.
func (s *session) tidy() {
	s.mu.Lock()
	pid, dialect := s.pid, s.shell.dialect
	s.mu.Unlock()
	if dialect == bash {
		return
	}
	shell, _ := s.box.treeOf(pid)
	if shell == nil {
		return
	}
	if m := s.box.modes(shell.TTY); m.Raw || m.NoEcho && dialect != ash {
		s.box.resetModes(shell.TTY)
	}
}

// family returns the processes of the command that began then: what is below the shell, without the children that earlier commands
// left in the background. Those were started before the command or, as far as the clock's ticks tell no
// difference, have an id not greater than background, the shell's $! at the time.
func (b *Box) family(shell int, began time.Time, background int) []proc.Process {
	ps := b.tree(shell)
	ticks := func(d time.Duration) int64 { return int64(d.Seconds() * proc.TicksPerSecond) }
	asked := time.Since(began)
	up := b.uptime()
	// The answer may take long, and tells the time of some moment in between: the command began after earliest and before latest.
	earliest, latest := ticks(up-time.Since(began)), ticks(up-asked)
	earlier := map[int]bool{}
	var family []proc.Process
	for _, p := range ps { // parents come before children
		foreground := p.Group == p.Foreground
		old := up > 0 && (p.Start < earliest-2 || p.Start <= latest+2 && p.PID <= background)
		if earlier[p.Parent] || p.Parent == shell && old && !foreground {
			earlier[p.PID] = true
			continue
		}
		family = append(family, p)
	}
	return family
}

// foreground returns the foreground process group of the shell's terminal, 0 if unknown; how often the shell has run, if it is in
// the foreground; and whether the terminal is in raw mode.
func (b *Box) foreground(shell int) (pgrp int, turns int64, raw bool) {
	p, _ := b.treeOf(shell)
	if p == nil {
		return 0, 0, false
	}
	for _, t := range p.Threads {
		if t.ID == shell {
			turns = t.Turns
		}
	}
	return p.Foreground, turns, b.modes(p.TTY).Raw
}

// signalForeground sends the signal to the foreground process group of the shell's terminal. It spares the shell and its
// forks, such as the subshell of a job, unless there is nothing else in that group.
func (b *Box) signalForeground(shell int, sig proc.Signal) error {
	self, ps := b.treeOf(shell)
	var programs, forks []proc.Process
	for _, p := range ps {
		switch {
		case p.Group != p.Foreground:
		case p.PID == shell, self != nil && p.Image == self.Image && p.Image != "":
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
	sent, err := b.send(pidsOf(programs), sig)
	if err == nil && sent == 0 {
		return errors.New("the processes may not be signalled, or have just ended")
	}
	return err
}

// signal sends the signals to those of ps that are still what they were.
func (b *Box) signal(ps []proc.Process, signals ...proc.Signal) {
	if ps = b.alive(ps); len(ps) > 0 {
		b.send(pidsOf(ps), signals...)
	}
}

// alive returns those of ps that have not ended. Zombies have ended.
func (b *Box) alive(ps []proc.Process) []proc.Process {
	if len(ps) == 0 {
		return nil
	}
	there, _ := asked(b, "alive", func(ctx context.Context) ([]proc.Process, error) { return b.processes.Alive(ctx, pidsOf(ps)...) })
	now := map[int]proc.Process{}
	for _, p := range there {
		now[p.PID] = p
	}
	var alive []proc.Process
	for _, p := range ps {
		if q, ok := now[p.PID]; ok && q.Start == p.Start && !ended(&q) { // else the id is another's by now
			alive = append(alive, p)
		}
	}
	return alive
}

// finish ends those of ps that are left: first by signals that they can handle, after the grace by SIGKILL. It returns when they are gone.
func (b *Box) finish(ps []proc.Process, grace time.Duration) {
	if ps = b.alive(ps); len(ps) == 0 {
		return
	}
	b.signal(ps, proc.SIGHUP, proc.SIGTERM, proc.SIGCONT) // interactive shells ignore TERM
	begin := time.Now()
	for pause := time.Millisecond; len(ps) > 0 && time.Since(begin) < grace+10*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		if time.Since(begin) >= grace {
			b.signal(ps, proc.SIGKILL)
		}
		time.Sleep(pause)
		ps = b.alive(ps)
	}
	if len(ps) > 0 {
		b.log.Warn("processes survive SIGKILL: another user's, or stuck in the kernel", "first", ps[0].PID, "number", len(ps))
	}
}

// killTree ends pid and what descends from it.
func (b *Box) killTree(pid int) {
	b.finish(b.tree(pid), 100*time.Millisecond)
}

// killMarked ends all processes that have mark in their environment, and what descends from them.
func (b *Box) killMarked(mark string) {
	for range 3 { // one may have forked meanwhile
		pids, _ := asked(b, "marked", func(ctx context.Context) ([]int, error) { return b.processes.Marked(ctx, mark) })
		if len(pids) == 0 {
			return
		}
		ps := b.tree(pids...)
		b.finish(ps, 100*time.Millisecond)
		if len(ps) == 1 {
			return // a shell that did nothing
		}
	}
}
