package processes

import (
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// Signal sends the signals to those of ps that have not ended.
func (h *Host) Signal(ps []proc.Process, signals ...proc.Signal) {
	if ps = h.alive(ps); len(ps) > 0 {
		h.Send(pidsOf(ps), signals...)
	}
}

// Terminate ends those of ps that are left. It sends signals that they can handle, and SIGKILL
// after the grace. It returns when they are gone.
func (h *Host) Terminate(ps []proc.Process, grace time.Duration) {
	h.terminate(h.alive(ps), grace)
}

// terminate is Terminate for processes that were there a moment ago.
func (h *Host) terminate(ps []proc.Process, grace time.Duration) {
	if len(ps) == 0 {
		return
	}
	// Interactive shells ignore SIGTERM.
	h.Send(pidsOf(ps), proc.SIGHUP, proc.SIGTERM, proc.SIGCONT)
	begin := time.Now()
	for pause := 100 * time.Microsecond; len(ps) > 0 &&
		time.Since(begin) < grace+10*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		if time.Since(begin) >= grace {
			h.Signal(ps, proc.SIGKILL)
		}
		time.Sleep(pause)
		ps = h.alive(ps)
	}
	if len(ps) > 0 {
		h.log.Warn("processes survive SIGKILL: another user's, or stuck in the kernel", "first",
			ps[0].PID, "number", len(ps))
	}
}

// EndDescendants ends the descendants of pid, as Terminate does.
func (h *Host) EndDescendants(pid int, grace time.Duration) {
	h.terminate(Without(h.Tree(pid), pid), grace)
}

// KillTree ends pid and its descendants.
func (h *Host) KillTree(pid int) {
	h.terminate(h.Tree(pid), 100*time.Millisecond)
}

// KillMarked ends all processes that have mark in their environment, and their descendants.
func (h *Host) KillMarked(mark string) {
	for range 3 { // a process may fork while others are killed
		pids := h.marked(mark)
		if len(pids) == 0 {
			return
		}
		ps := h.Tree(pids...)
		h.terminate(ps, 100*time.Millisecond)
		if len(ps) == 1 {
			return // only the shell, which did nothing
		}
	}
}

// When the shell comes back, it sets the terminal's modes, which wakes the terminal's reader for a
// moment. So the terminal counts as unread only if several looks have found no reader, and no
// process at work that may be about to read. (What the user has in the background may work for
// ever.)
const (
	sureLooks = 2
	sureAfter = 2 * time.Millisecond
	atWork    = 200 * time.Millisecond
)

// maxReaders is how often EndReaders ends the readers that it has found.
const maxReaders = 3

// EndReaders ends all processes but the shell itself that read the shell's terminal, and puts the
// terminal's modes in order. It reports false if some reader cannot be ended.
func (h *Host) EndReaders(shell hostapi.Process, grace time.Duration) bool {
	begin := time.Now()
	for ended, none := 0, 0; ended < maxReaders; {
		l, err := h.Look(shell)
		if err != nil || l.Gone {
			return true
		}
		if l.Modes.Raw || l.Modes.NoEcho {
			h.resetModes(l.TTY)
		}
		var readers []int
		for _, w := range l.Waits {
			if w.PID != shell.PID() {
				readers = append(readers, w.PID)
			}
		}
		if len(readers) == 0 {
			if !l.Runs || time.Since(begin) > atWork {
				none++
			}
			if none > sureLooks {
				return true
			}
			time.Sleep(sureAfter)
			continue
		}
		ended, none = ended+1, 0
		h.terminate(h.Tree(readers...), grace)
	}
	return false
}
