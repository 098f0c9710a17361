package shellbox

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// ticksOf returns the time when on the clock of proc.Process.Start: not before earliest and not
// after latest. The host's answer may take long, and is the time of some moment in between. Both
// are 0 if the host does not know.
func (b *Box) ticksOf(when time.Time) (earliest, latest int64) {
	ticks := func(d time.Duration) int64 { return int64(d.Seconds() * proc.TicksPerSecond) }
	asked := time.Since(when)
	up := b.uptime()
	if up <= 0 {
		return 0, 0
	}
	return ticks(up - time.Since(when)), ticks(up - asked)
}

// family returns the processes of the command that began then: the descendants of the shell,
// without the children that earlier commands left in the background. Those children were started
// before the command. Where the clock's ticks show no difference, their id is not greater than
// background, the shell's $! at the time.
func (b *Box) family(shell int, began time.Time, background int) []proc.Process {
	ps := b.tree(shell)
	earliest, latest := b.ticksOf(began)
	earlier := map[int]bool{}
	var family []proc.Process
	for _, p := range ps { // parents come before children
		foreground := p.Group == p.Foreground
		old := latest > 0 && (p.Start < earliest-2 || p.Start <= latest+2 && p.PID <= background)
		if earlier[p.Parent] || p.Parent == shell && old && !foreground {
			earlier[p.PID] = true
			continue
		}
		family = append(family, p)
	}
	return family
}

// signalForeground sends the signal to the foreground process group of the shell's terminal. It
// spares the shell and its forks, such as the subshell of a job, unless nothing else is in that
// group. Where the host does not know that group (gVisor), it signals the shell's whole process
// session.
func (b *Box) signalForeground(shell int, sig proc.Signal) error {
	self, ps := b.treeOf(shell)
	var programs, forks []proc.Process
	for _, p := range ps {
		untold := p.Foreground == 0 && p.TTY == 0 && self != nil && p.Session == self.Session
		switch {
		case p.Group != p.Foreground && !untold:
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

// signal sends the signals to those of ps that have not ended.
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
	there, _ := asked(b, "alive", func(ctx context.Context) ([]proc.Process, error) {
		return b.processes.Alive(ctx, pidsOf(ps)...)
	})
	return proc.Left(ps, there)
}

// terminate ends those of ps that are left: first by signals that they can handle, after the grace
// by SIGKILL. It returns when they are gone.
func (b *Box) terminate(ps []proc.Process, grace time.Duration) {
	if ps = b.alive(ps); len(ps) == 0 {
		return
	}
	b.signal(ps, proc.SIGHUP, proc.SIGTERM, proc.SIGCONT) // interactive shells ignore TERM
	begin := time.Now()
	for pause := time.Millisecond; len(ps) > 0 &&
		time.Since(begin) < grace+10*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		if time.Since(begin) >= grace {
			b.signal(ps, proc.SIGKILL)
		}
		time.Sleep(pause)
		ps = b.alive(ps)
	}
	if len(ps) > 0 {
		b.log.Warn("processes survive SIGKILL: another user's, or stuck in the kernel", "first",
			ps[0].PID, "number", len(ps))
	}
}

// killTree ends pid and its descendants.
func (b *Box) killTree(pid int) {
	b.terminate(b.tree(pid), 100*time.Millisecond)
}

// killMarked ends all processes that have mark in their environment, and their descendants.
func (b *Box) killMarked(mark string) {
	for range 3 { // one may have forked meanwhile
		pids, _ := asked(b, "marked", func(ctx context.Context) ([]int, error) {
			return b.processes.Marked(ctx, mark)
		})
		if len(pids) == 0 {
			return
		}
		ps := b.tree(pids...)
		b.terminate(ps, 100*time.Millisecond)
		if len(ps) == 1 {
			return // a shell that did nothing
		}
	}
}
