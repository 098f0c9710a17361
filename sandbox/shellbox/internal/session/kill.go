package session

import (
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
)

// killTick is how often a killing looks at what is in the foreground.
const killTick = 50 * time.Millisecond

// patientLooks is how many looks take as long as a step at least. Where a look takes long, the box
// is short of processors, and so is a shell that is about to come back: the next interrupt would
// cut the line that it reads.
const patientLooks = 5

// patientPrograms is how many programs of a command get all steps, one program after the other,
// however long each takes.
const patientPrograms = 3

// killLocked ends the unfinished command as a person would, then harder.
func (s *Session) killLocked() {
	c := s.cmd
	if c == nil || s.err != nil || c.phase.Killed() {
		return
	}
	c.limitWriters()
	switch {
	case c.phase.Over():
		return
	case c.phase == phase.Queued:
		s.advanceLocked(c, phase.Finished)
		s.cmd = nil
		c.completeLocked(nil)
		s.logEndLocked(c, nil, nil)
		return
	}
	s.advanceLocked(c, phase.KillBegan)
	c.changed.Send()
	if s.opts.Pipes {
		s.readers.Go(s.job.kill)
		return
	}
	k := &killing{s: s, c: c, sh: s.sh, command: processes.Command{
		Shell: s.sh.pid, Mark: s.box.Env.MarkOf(s.id),
		Background: c.background, Began: c.began, NotBefore: c.startedAfter,
	}}
	s.readers.Go(k.run)
}

// A killing ends one command. The foreground gets the interrupt, SIGTERM and SIGKILL, each
// Options.Grace after the other. If the command then starts another program, that one gets the
// same, but not for ever.
type killing struct {
	s       *Session
	c       *command
	sh      *shell
	command processes.Command

	family     []proc.Process // all processes of the command that were seen
	first      time.Time      // when the killing began
	since      time.Time      // when the last step was taken
	slow       time.Duration  // how long a look takes: the worst of the last looks
	step       int            // the next step against the program in the foreground
	questions  int            // how often the shell was asked whether it is back
	idle       int            // in how many looks, one after the other, it waited for its next line
	mended     int            // how often a line that an interrupt had cut was mended
	last       int            // the foreground process group at the last step
	programs   int            // how many programs have got the first step
	unreadKeys int            // bytes of input that no program has read
}

func (k *killing) run() {
	s, c := k.s, k.c
	k.unreadKeys = k.sh.keys.Drop()
	k.first, k.last = time.Now(), -1
	k.since = k.first
	for {
		s.mu.Lock()
		changed, at := c.changed.Wait(), c.phase
		s.mu.Unlock()
		if at.Over() {
			break
		}
		// An interrupt would cut the line that the shell is reading, and the shell would execute
		// the rest.
		if at != phase.KilledSent || time.Since(k.first) > unanswered {
			k.nextStep(at)
		}
		tick := time.NewTimer(killTick)
		select {
		case <-changed:
		case <-tick.C:
		case <-s.ended:
			tick.Stop()
			return
		}
		tick.Stop()
	}
	k.cleanUp()
}

// nextStep takes the next step, if it is time. The time of each step counts from when the one
// before was taken. Otherwise, where looking takes long, the shell would be killed right after its
// program.
func (k *killing) nextStep(at phase.Command) {
	began := time.Now()
	l, _ := k.s.box.Processes.Look(k.sh.proc)
	k.slow = max(time.Since(began), k.slow*3/4)
	if at == phase.KilledSent && l.Runs && l.Foreground == k.sh.pid &&
		time.Since(k.first) < undelivered {
		return // on a busy machine the shell may still be reading its line
	}
	grace := k.s.box.Grace
	if k.mendCut(&l) {
		return
	}
	k.askIdle(&l)
	if l.Foreground != k.last && (k.programs < patientPrograms || time.Since(k.first) < 4*grace) {
		k.since, k.step, k.last = time.Now(), 0, l.Foreground
		k.programs++
	}
	least := patientLooks * k.slow
	waits := []time.Duration{0, max(grace/2, least), max(grace/2, least), max(grace, least),
		max(grace, 2*least)} // before each step
	if k.programs > 1 && l.Foreground == k.sh.pid {
		waits[0] = waits[1] // its program has ended: the shell is most likely about to come back
	}
	if time.Since(k.since) < waits[k.step] {
		return
	}
	switch k.step {
	case 0, 1: // twice, as a person would: a shell between two programs may have missed the first
		if len(k.family) == 0 { // what the interrupt orphans is no descendant of the shell
			k.findProcesses()
		}
		k.interrupt(&l)
		k.findProcesses() // finds new processes before their parents end
	case 2:
		k.signal(proc.SIGTERM)
	case 3:
		k.signal(proc.SIGKILL)
	case 4:
		k.askOrReplace(&l)
	}
	k.step = min(k.step+1, 4)
	k.since = time.Now()
}

// mendCut deals with a shell of which an interrupt has cut the line that it was reading, which most
// likely was the question that was asked while the command ran. The shell takes the rest for the
// first of several lines. An interrupt has it drop that, and then it is asked again.
func (k *killing) mendCut(l *proc.Look) bool {
	k.s.mu.Lock()
	cut := k.c.cut && l.Reads != "" && l.Reads == k.sh.pipe && k.mended < maxTries
	k.s.mu.Unlock()
	if !cut || !k.s.box.Processes.Interrupt(k.sh.proc) {
		return false
	}
	k.mended++
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	k.c.cut = false
	if k.s.sh == k.sh && k.s.cmd == k.c && !k.c.phase.Over() {
		k.s.askShellLocked(k.sh)
	}
	return true
}

// idleLooks is in how many looks a shell waits for its next line that is not about to say that it
// is back.
const idleLooks = 3

// askIdle asks a shell that waits for its next line: an interrupt that came when its program had
// ended has made it drop the rest of its line, which says that it is back, or the question that was
// asked while the program ran. One that does not answer gets the further steps.
func (k *killing) askIdle(l *proc.Look) {
	if l.Reads == "" || l.Reads != k.sh.pipe {
		k.idle = 0
		return
	}
	if k.idle++; k.idle%idleLooks != 0 || k.idle > idleLooks*maxTries {
		return
	}
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if k.s.sh == k.sh && k.s.cmd == k.c && !k.c.phase.Over() {
		k.s.askShellLocked(k.sh)
	}
}

// askOrReplace deals with a shell that has not said that it is back. If the shell waits for its
// next line, it is back: the second interrupt has come while it was about to say so. So it is
// asked, because on a busy machine the watch takes longer to be sure of that. Any other shell is
// replaced.
func (k *killing) askOrReplace(l *proc.Look) {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if l.Reads == "" || l.Reads != k.sh.pipe || k.questions == maxTries {
		k.s.replaceShellLocked(k.sh)
		return
	}
	if k.questions++; k.questions == maxTries {
		k.sh.commands.Write(dialect.Repair)
	}
	k.s.askShellLocked(k.sh)
}

// interrupt does what the interrupt key does, by a signal. The signal has been sent when interrupt
// returns, whereas nobody knows when the signal of a typed key comes. A shell that waits for its
// next line gets none, because it would drop a part of that line.
func (k *killing) interrupt(l *proc.Look) {
	if l.Reads != "" && l.Reads == k.sh.pipe {
		return
	}
	// in raw mode the key is an ordinary byte, which a relay (sudo, script) passes on
	if !k.s.box.Processes.Interrupt(k.sh.proc) || l.Modes.Raw {
		k.sh.keys.Write("\x03")
	}
}

// findProcesses adds the processes of the command to those found before. While the shell has just
// got the command's line, nothing tells them from those that the last command has left: the marker
// with the shell's $! is still on its way.
func (k *killing) findProcesses() {
	k.s.mu.Lock()
	begun := k.c.phase != phase.KilledSent
	k.command.Background = k.c.background
	k.s.mu.Unlock()
	if !begun && time.Since(k.first) < unanswered {
		return
	}
	k.family = processes.Merge(k.family, k.s.box.Processes.Family(k.command))
}

// signal signals all processes of the command, without the shell.
func (k *killing) signal(sig proc.Signal) {
	k.findProcesses()
	k.s.box.Processes.Signal(processes.Without(k.family, k.sh.pid), sig)
}

// cleanUp ends what is left of the command when the shell has come back, and puts the terminal in
// order.
func (k *killing) cleanUp() {
	s, c, b := k.s, k.c, k.s.box
	oom := s.oomKilled(c)
	k.findProcesses()
	b.Processes.Terminate(processes.Without(k.family, k.sh.pid), k.cleanGrace())
	b.Processes.EndStrays(k.command, k.family, k.cleanGrace())
	select {
	case <-k.sh.ended:
	default:
		k.endReaders()
		k.unreadKeys += s.discard(k.sh)
		b.Processes.Settle(k.sh.proc)
		s.confirmShell(k.sh)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == c && c.phase == phase.KilledReturned {
		c.result.Unread += min(k.unreadKeys+len(c.typedAhead), c.typed)
		c.result.OOM = c.result.OOM || oom
		s.finishCommandLocked(c, c.result)
	}
}

// endReaders ends the processes that go on reading the terminal, such as the pinentry of an agent
// that the command has started. They would read the input of the next command. If a process cannot
// be ended, the session gets a new terminal.
func (k *killing) endReaders() {
	b := k.s.box
	if b.Processes.EndReaders(k.sh.proc, k.cleanGrace()) {
		return
	}
	b.Log.Warn("a process that cannot be ended reads the terminal: the session gets a new one",
		"session", k.s.id)
	b.Processes.Send([]int{k.sh.pid}, proc.SIGKILL)
	<-k.sh.ended
}

// cleanGrace is how long what the command has left may take to end.
func (k *killing) cleanGrace() time.Duration {
	return min(k.s.box.Grace, 200*time.Millisecond)
}
