package processes

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A Foreground is the foreground process group of a shell's terminal, which has got a signal.
type Foreground struct {
	h      *Host
	signal proc.Signal
	// dropsSignal says that the shells are bash and the signal is SIGINT. While bash waits for a
	// program, it has a handler of its own for SIGINT. It drops the signal if the program does not
	// die of it.
	dropsSignal bool
	// spared are shells that have not got the signal, because each waits for a program that has got
	// it, or may be about to wait for one.
	spared []proc.Process
	told   []proc.Process // the group when the signal was sent
	waited map[int]bool   // the parents of the processes in told
}

// forkLimit is how long a shell may take to fork for SignalForeground to wait for it.
const forkLimit = time.Second

// SignalForeground sends the signal to the foreground process group of the shell's terminal, but
// not to the shell itself. If nothing else is in that group, the error is os.ErrProcessDone. If the
// host does not know that group (gVisor), SignalForeground signals the shell's whole process
// session.
//
// The shell's forks, such as the subshell of a job, do not get a signal that would end them while
// they wait for a program: otherwise the job would end, with 128 and the number of the signal,
// before the program has ended as it likes. See Follow. A fork that has a trap gets the signal. But
// while bash waits, it has a handler of its own for SIGINT, so a handler does not show a trap
// there, and bash would return 0.
func (h *Host) SignalForeground(shell int, bash bool, sig proc.Signal) (*Foreground, error) {
	f := &Foreground{h: h, signal: sig,
		dropsSignal: bash && sig == proc.Signal(strconv.Itoa(int(syscall.SIGINT)))}
	forks := f.look(shell)
	// While bash forks it blocks SIGTERM. Even if it has a trap, it may have no handler for SIGTERM
	// until the fork has returned (make_child in its jobs.c). So what it catches is known only
	// later.
	blocks := func(p proc.Process) bool { return p.Blocks(sig) }
	for begin := time.Now(); slices.ContainsFunc(forks, blocks) &&
		time.Since(begin) < forkLimit; forks = f.look(shell) {
		time.Sleep(time.Millisecond)
	}
	var pids []int
	for _, p := range f.told {
		isFork := func(q proc.Process) bool { return q.PID == p.PID }
		if slices.ContainsFunc(forks, isFork) &&
			(f.dropsSignal || f.waited[p.PID] && !p.Catches(sig)) {
			f.spared = append(f.spared, p)
		} else if !p.Ended() {
			pids = append(pids, p.PID)
		}
	}
	if len(pids) == 0 && len(f.spared) > 0 { // the program that they wait for has just ended
		return f, nil
	}
	if len(pids) == 0 {
		return nil, os.ErrProcessDone
	}
	sent, err := h.Send(pids, sig)
	if err == nil && sent == 0 && len(f.spared) == 0 {
		err = errors.New("the processes may not be signalled, or have just ended")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// look sets told to the foreground group without the shell. It returns those of the group that are
// forks of the shell and have not executed another program.
func (f *Foreground) look(shell int) (forks []proc.Process) {
	var self *proc.Process // nil: the shell has ended
	ps := f.h.Tree(shell)
	if i := slices.IndexFunc(ps, func(p proc.Process) bool { return p.PID == shell }); i >= 0 {
		self = &ps[i]
	}
	f.told, f.waited = nil, map[int]bool{}
	for _, p := range ps {
		untold := p.Foreground == 0 && p.TTY == 0 && self != nil && p.Session == self.Session
		if p.PID != shell && (p.Group == p.Foreground || untold) {
			f.told = append(f.told, p)
			f.waited[p.Parent] = true
		}
	}
	for _, p := range f.told {
		if self != nil && p.Image == self.Image && p.Image != "" {
			forks = append(forks, p)
		}
	}
	return forks
}

const (
	// followLimit is how long after the signal the programs may end for their shells to get it.
	followLimit = 10 * time.Second
	// A shell that has no program counts as going on if it neither ends nor sleeps for this long.
	spinLimit = time.Second
	// loneLooks is how many looks may find no program of a shell that waits for one. One program
	// may end and the next begin during a look.
	loneLooks = 5
	// stopLooks is how often sendTogether looks whether a program has stopped. A program stops at
	// once, unless it is in a system call that cannot be interrupted.
	stopLooks = 5
)

// Follow sends the signal to each spared fork as soon as the fork goes on: a loop begins its next
// program, or a script its next command. A fork that ends with its program gets nothing. Follow
// returns when there is nothing left to do, or when done is closed.
func (f *Foreground) Follow(done <-chan struct{}) {
	if n, _ := strconv.Atoi(string(f.signal)); slices.Contains(goesOn, syscall.Signal(n)) {
		return
	}
	lone := map[int]*solitude{}
	var missed []int // forks whose program has ended before it was stopped
	begin := time.Now()
	const least, most = 2 * time.Millisecond, 50 * time.Millisecond
	for pause := least; len(f.spared) > 0; pause = min(2*pause, most) {
		if time.Since(begin) > followLimit {
			f.h.Send(missed, f.signal) // bash may drop the signal
			return
		}
		select {
		case <-done:
			return
		case <-time.After(pause):
		}
		now := f.h.Tree(pidsOf(f.spared)...)
		f.spared = proc.Left(f.spared, now)
		missed = nil
		f.spared = slices.DeleteFunc(f.spared, func(p proc.Process) bool {
			children, further := f.children(p, now)
			switch {
			case children == 0:
				goes := f.goesOnAlone(p, now, lone)
				if goes {
					f.h.Send([]int{p.PID}, f.signal)
				}
				return goes
			case len(further) > 0 && !f.dropsSignal:
				f.h.Send(append(pidsOf(further), p.PID), f.signal)
				return true
			case len(further) > 0 && f.sendTogether(p, further, now):
				return true
			case len(further) > 0:
				missed, pause = append(missed, p.PID), least
			}
			delete(lone, p.PID)
			return false
		})
	}
}

// children returns how many children of p have not ended, and which of them have not got the
// signal.
func (f *Foreground) children(p proc.Process, now []proc.Process) (n int, further []proc.Process) {
	for _, q := range now {
		if q.Parent != p.PID || q.Ended() {
			continue
		}
		n++
		if len(proc.Left(f.told, []proc.Process{q})) == 0 {
			further = append(further, q)
		}
	}
	return n, further
}

// sendTogether sends the signal to the shell p and to the program that it waits for, which is among
// its children. Meanwhile the program is stopped, so that it cannot end by itself between the two.
// sendTogether reports false if it has not sent the signal.
func (f *Foreground) sendTogether(p proc.Process, children, now []proc.Process) bool {
	var family []proc.Process
	parents := map[int]bool{}
	for _, q := range now { // each after its parent
		isChild := func(c proc.Process) bool { return c.PID == q.PID }
		if q.Group == p.Group && (parents[q.Parent] || slices.ContainsFunc(children, isChild)) {
			family = append(family, q)
			parents[q.PID] = true
		}
	}
	// A fork that has executed nothing yet still handles the signal as the shell does.
	isYoung := func(q proc.Process) bool {
		hasChild := func(c proc.Process) bool { return c.Parent == q.PID }
		return q.Image == p.Image && !slices.ContainsFunc(family, hasChild)
	}
	if len(family) == 0 || slices.ContainsFunc(family, isYoung) {
		return false
	}
	pids := pidsOf(family)
	f.h.Send(pids, proc.SIGSTOP)
	defer f.h.Send(pids, proc.SIGCONT)
	for range stopLooks {
		there := f.h.Tree(pids...)
		goes := func(q proc.Process) bool { return q.State != "T" }
		if len(proc.Left(family, there)) < len(family) {
			return false
		}
		if !slices.ContainsFunc(there, goes) {
			f.h.Send(append([]int{p.PID}, pids...), f.signal)
			return true
		}
	}
	return false
}

// A solitude is the time for which a shell has had no children, in all looks.
type solitude struct {
	begin         time.Time
	looks, asleep int // of the looks, those in which it slept
}

// goesOnAlone reports whether p, which has no children, goes on: it sleeps in several looks, as in
// a read, or runs for long. A shell that is about to end, because its program has ended, does
// neither.
func (f *Foreground) goesOnAlone(p proc.Process, now []proc.Process, lone map[int]*solitude) bool {
	l := lone[p.PID]
	if l == nil {
		l = &solitude{begin: time.Now()}
		lone[p.PID] = l
	}
	l.looks++
	for _, q := range now {
		if q.PID == p.PID && q.State == "S" {
			l.asleep++
		}
	}
	return l.asleep > loneLooks || l.looks > loneLooks && !f.waited[p.PID] ||
		time.Since(l.begin) > spinLimit
}
