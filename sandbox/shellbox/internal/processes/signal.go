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
	// spared are shells that have not got the signal: each waits for a program that has got it.
	spared []proc.Process
	told   []proc.Process // the group when the signal was sent
}

// SignalForeground sends the signal to the foreground process group of the shell's terminal, but
// not to the shell itself: if nothing else is in that group, the error is os.ErrProcessDone. Where
// the host does not know that group (gVisor), it signals the shell's whole process session.
//
// The shell's forks, such as the subshell of a job, do not get a signal that would end them while
// they wait for a program: the job would have ended with 128 and the number of the signal before
// the program has ended as it likes. See Follow. A fork that has a trap gets the signal. But bash
// has a handler of its own for SIGINT while it waits, and would return 0: there it does not tell.
func (h *Host) SignalForeground(shell int, bash bool, sig proc.Signal) (*Foreground, error) {
	trapTells := !(bash && sig == proc.Signal(strconv.Itoa(int(syscall.SIGINT))))
	var self *proc.Process // nil: the shell has ended
	ps := h.Tree(shell)
	if i := slices.IndexFunc(ps, func(p proc.Process) bool { return p.PID == shell }); i >= 0 {
		self = &ps[i]
	}
	f := &Foreground{h: h, signal: sig}
	waited := map[int]bool{} // the parents of processes of the group
	for _, p := range ps {
		untold := p.Foreground == 0 && p.TTY == 0 && self != nil && p.Session == self.Session
		if p.PID != shell && (p.Group == p.Foreground || untold) {
			f.told = append(f.told, p)
			waited[p.Parent] = true
		}
	}
	var pids []int
	for _, p := range f.told {
		fork := self != nil && p.Image == self.Image && p.Image != ""
		if fork && waited[p.PID] && !(trapTells && p.Catches(sig)) {
			f.spared = append(f.spared, p)
		} else if !p.Ended() {
			pids = append(pids, p.PID)
		}
	}
	if len(pids) == 0 && len(f.spared) > 0 { // their program has just ended
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

const (
	// followLimit is how long after the signal the programs may end for their shells to get it.
	followLimit = 10 * time.Second
	// A shell that has no program goes on if it neither ends nor sleeps for this long.
	spinLimit = time.Second
)

// Follow sends the signal to the forks that have been spared, as soon as they go on: a loop begins
// its next program, or the script its next command. One that ends with its program gets nothing.
// Follow returns when there is nothing left to do, or when done is closed.
func (f *Foreground) Follow(done <-chan struct{}) {
	if n, _ := strconv.Atoi(string(f.signal)); slices.Contains(goesOn, syscall.Signal(n)) {
		return
	}
	alone, asleep := map[int]time.Time{}, map[int]int{}
	begin := time.Now()
	const most = 50 * time.Millisecond
	for pause := 2 * time.Millisecond; len(f.spared) > 0; pause = min(2*pause, most) {
		if time.Since(begin) > followLimit {
			return
		}
		select {
		case <-done:
			return
		case <-time.After(pause):
		}
		now := f.h.Tree(pidsOf(f.spared)...)
		f.spared = proc.Left(f.spared, now)
		f.spared = slices.DeleteFunc(f.spared, func(p proc.Process) bool {
			children, further := f.children(p, now)
			goes := len(further) > 0 || children == 0 && f.goesOnAlone(p, now, alone, asleep)
			if goes {
				f.h.Send(append(further, p.PID), f.signal)
			}
			return goes
		})
	}
}

// children returns how many children of p have not ended, and the ids of those that have not got
// the signal.
func (f *Foreground) children(p proc.Process, now []proc.Process) (n int, further []int) {
	for _, q := range now {
		if q.Parent != p.PID || q.Ended() {
			continue
		}
		n++
		if len(proc.Left(f.told, []proc.Process{q})) == 0 {
			further = append(further, q.PID)
		}
	}
	return n, further
}

// goesOnAlone reports whether p, which has no children, goes on: it sleeps in two looks, as in a
// read, or runs for long. A shell that is about to end does neither.
func (f *Foreground) goesOnAlone(p proc.Process, now []proc.Process, alone map[int]time.Time,
	asleep map[int]int) bool {
	if alone[p.PID].IsZero() {
		alone[p.PID] = time.Now()
	}
	for _, q := range now {
		if q.PID == p.PID && q.State == "S" {
			asleep[p.PID]++
		}
	}
	return asleep[p.PID] > 1 || time.Since(alone[p.PID]) > spinLimit
}
