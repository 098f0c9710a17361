package processes

import (
	"math"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A Command says which processes are those of a shell's command.
type Command struct {
	Shell      int       // the shell's process id
	Mark       string    // is in the environment of everything that the shell has started
	Background int       // the shell's $! when the command began
	Began      time.Time // when the command began
	// NotBefore is when the previous command ended. What this command has started is younger.
	NotBefore time.Time
}

// Family returns the shell and its descendants, without the children that earlier commands left in
// the background. Those children were started before the command. If the clock's ticks do not show
// that, the ids do: theirs are not greater than Background.
func (h *Host) Family(c Command) []proc.Process {
	ps := h.Tree(c.Shell)
	earliest, latest := h.ticksOf(c.Began)
	earlier := map[int]bool{}
	var family []proc.Process
	for _, p := range ps { // parents come before children
		foreground := p.Group == p.Foreground
		old := latest > 0 && (p.Start < earliest-2 || p.Start <= latest+2 && p.PID <= c.Background)
		if earlier[p.Parent] || p.Parent == c.Shell && old && !foreground {
			earlier[p.PID] = true
			continue
		}
		family = append(family, p)
	}
	return family
}

// strayRounds is how often EndStrays looks for strays. A stray that forks without end may start
// processes faster than they are ended.
const strayRounds = 5

// EndStrays ends the command's Strays, as Terminate does, until none is left.
func (h *Host) EndStrays(c Command, family []proc.Process, grace time.Duration) {
	for range strayRounds { // a process may fork while others are ended
		strays := h.Strays(c, family)
		if len(strays) == 0 {
			return
		}
		h.Terminate(strays, grace)
	}
}

// Strays returns the processes of the command that are no descendants of the shell, because they
// have a process session of their own or their parent has ended. They have the mark in their
// environment, and are younger than the end of the previous command. What earlier commands have
// left runs on, with its descendants. family joins all results of Family for this command.
//
// A process that was started within two ticks (20 ms) after that end counts as one of the previous
// command, unless its id is greater than one of family.
func (h *Host) Strays(c Command, family []proc.Process) (strays []proc.Process) {
	marked := h.marked(c.Mark)
	if len(marked) < 2 { // the shell
		return nil
	}
	_, free := h.ticksOf(c.NotBefore)
	began, _ := h.ticksOf(c.Began)
	first := math.MaxInt // the lowest id of the command's processes
	for _, p := range family {
		if p.PID != c.Shell {
			first = min(first, p.PID)
		}
	}
	spared := map[int]bool{c.Shell: true}
	for _, p := range h.Tree(marked...) { // parents come before children
		// Commands may follow each other faster than the clock of Start ticks. Then the ids decide.
		young := free > 0 && (p.Start > free+1 || p.Start >= began-2 && p.PID > first)
		if spared[p.PID] || spared[p.Parent] || !young {
			spared[p.PID] = true
			continue
		}
		strays = append(strays, p)
	}
	return strays
}
