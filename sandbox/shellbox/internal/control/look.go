package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/shellquote"
)

// This file turns the answer of control.sh's look into a proc.Look. The engine looks every few
// milliseconds. So each look is one question to the shell. Answers that take the shell another
// process are remembered, and are asked for again only after a change.

// Look is hostapi.Processes.Look.
func (c *Processes) Look(ctx context.Context, pid int) (proc.Look, error) {
	m := c.memo(pid)
	call := "look " + itoa(pid) + " " + shellquote.Quote(m.image)
	// If turns is 0, the kernel does not count them. If reads is "", the thread ran at the last
	// look, and may have begun to read in the same turn.
	if m.turns > 0 && m.reads != "" {
		call += " " + itoa(int(m.turns))
	}
	out, err := c.query(ctx, call)
	if err != nil {
		return proc.Look{}, err
	}
	v, err := parseLook(out, &m)
	if err != nil {
		return proc.Look{}, err
	}
	look := v.look(pid)
	c.remember(pid, m, look.Gone)
	if !look.Gone && len(v.processes) > 0 {
		look.Reads, look.Args = m.reads, m.args
	}
	return look, nil
}

// A snapshot is the content of one answer of look.
type snapshot struct {
	gone      bool
	processes []process             // each after its parent
	modes     map[int]terminalModes // by the terminal's number
	uptime    time.Duration

	// By a process's index in processes.
	parents  []int // the index of its parent; -1: not there
	children [][]int
	below    []terminals  // in whose foreground its descendants are
	passed   map[int]bool // a relay passes its input on to it, or to its descendants
	relays   map[int]bool // findWaits has passed it

	// The rest is set by findWaits. foreground holds the answers of mayWaitOn, by a terminal's
	// number. visited holds the terminals that findWaits has visited.
	foreground  map[int][]int
	visited     map[int]bool
	found       []reading
	hidden      bool       // as proc.Look.Hidden
	hiddenModes proc.Modes // as proc.Look.HiddenModes
}

// A process is a process of a snapshot.
type process struct {
	proc.Process
	threads []thread // empty for a process in the background
	turns   int64    // of all threads; of the main thread for a process in the background
}

type thread struct {
	id    int
	turns int64
	what  string // the last word of the T line
}

// lookMax bounds the memory for the lines of a look: more than 10,000 processes and threads. It
// also bounds the time of findWaits.
const lookMax = 2 << 20

// parseLook parses an answer of look, and updates the memo.
func parseLook(out string, m *memo) (*snapshot, error) {
	v := &snapshot{modes: map[int]terminalModes{}, visited: map[int]bool{},
		passed: map[int]bool{}, relays: map[int]bool{}}
	before, args, told := strings.Cut("\n"+out, "\nA\n")
	image, reads := "", ""
	lines := bounded.List{What: "a look at processes", Max: lookMax}
	for rest := strings.TrimPrefix(before, "\n"); rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if err := lines.Add(0); err != nil {
			return nil, err
		}
		switch kind, words, _ := strings.Cut(line, " "); kind {
		case "G":
			v.gone = true
		case "P":
			words := strings.SplitN(line, " ", 11)
			if p, ok := parseProcess(words); ok {
				if v.processes = append(v.processes, process{Process: p}); len(v.processes) == 1 {
					image = strings.Join(words[8:], " ")
				}
			}
		case "B", "T":
			v.addTurns(strings.SplitN(line, " ", 5))
		case "U":
			v.uptime = parseSeconds(words)
		case "M":
			text, _, _ := strings.Cut(rest, "\nM ")
			v.modes[atoi(words)] = parseModes(text)
		case "R":
			if reads = words; line == "R" {
				reads = m.reads
			}
		}
	}
	m.image, m.reads, m.turns = image, reads, 0
	if len(v.processes) > 0 {
		m.turns = v.processes[0].mainTurns()
	}
	if told {
		var err error
		if m.args, err = splitSwapped(args); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// addTurns parses the words of a B or a T line, which belongs to the last process.
func (v *snapshot) addTurns(f []string) {
	if len(v.processes) == 0 {
		return
	}
	p := &v.processes[len(v.processes)-1]
	switch {
	case f[0] == "B" && len(f) == 2:
		p.turns = atoi64(f[1])
		return
	case f[0] != "T" || len(f) != 4:
		return
	}
	t := thread{id: atoi(f[1]), turns: atoi64(f[2]), what: f[3]}
	p.threads, p.turns = append(p.threads, t), p.turns+t.turns
}

func (p *process) mainTurns() int64 {
	for _, t := range p.threads {
		if t.id == p.PID {
			return t.turns
		}
	}
	return 0
}

// look returns the Look at the process, without Reads and Args.
func (v *snapshot) look(pid int) (look proc.Look) {
	if v.gone || len(v.processes) > 0 && v.processes[0].Ended() {
		return proc.Look{Gone: true}
	}
	if len(v.processes) == 0 || v.processes[0].PID != pid {
		return look // the machine has no /proc
	}
	v.findFamilies()
	p := &v.processes[0]
	look.Turns, look.Image, look.TTY = p.mainTurns(), p.Image, p.TTY
	look.Stopped, look.Foreground = p.State == "T", max(p.Foreground, 0)
	look.Modes = v.modes[p.TTY].Modes
	for i := range v.processes {
		look.Total += v.processes[i].turns
		look.Runs = look.Runs || v.processes[i].runs()
	}
	v.findWaits(p.TTY, 0)
	look.Waits = v.judge()
	look.Hidden, look.HiddenModes = v.hidden, v.hiddenModes
	return look
}

// findFamilies sets parents, children and below.
func (v *snapshot) findFamilies() {
	n := len(v.processes)
	v.parents, v.children, v.below = make([]int, n), make([][]int, n), make([]terminals, n)
	places := make(map[int]int, n)
	for i := range v.processes {
		parent, ok := places[v.processes[i].Parent]
		if ok {
			v.children[parent] = append(v.children[parent], i)
		} else {
			parent = -1
		}
		v.parents[i] = parent
		places[v.processes[i].PID] = i
	}
	for i := n - 1; i >= 0; i-- {
		if parent := v.parents[i]; parent >= 0 {
			v.below[parent].add(v.below[i]...)
			if p := &v.processes[i]; p.TTY != 0 && p.Group == p.Foreground {
				v.below[parent].add(p.TTY)
			}
		}
	}
}

// terminals are at most two different terminals of a set: enough to tell whether the set has one
// that is not a given one.
type terminals []int

func (s *terminals) add(ttys ...int) {
	for _, tty := range ttys {
		if len(*s) < 2 && !slices.Contains(*s, tty) {
			*s = append(*s, tty)
		}
	}
}

func (s terminals) hasOther(than int) bool {
	return slices.ContainsFunc(s, func(tty int) bool { return tty != than })
}

// runs reports whether the process runs, is about to run, or waits for a disk.
func (p *process) runs() bool {
	return p.State == "R" || p.State == "D" ||
		slices.ContainsFunc(p.threads, func(t thread) bool { return t.what == "run" })
}

// findWaits adds to v.found the threads that wait for the terminal's input. A relay reads one
// terminal and passes the input on to another. Instead of the relay, findWaits adds the threads
// that wait for the other terminal. turns is the sum of the turns of the relays on the way to this
// terminal.
func (v *snapshot) findWaits(tty int, turns int64) {
	if tty == 0 || v.visited[tty] {
		return
	}
	v.visited[tty] = true
	m := v.modes[tty]
	hidden, polls := false, false
	for _, i := range v.mayWaitOn(tty) {
		for _, t := range v.processes[i].threads {
			hidden = v.findWaitsOf(i, t, tty, turns) || hidden
			polls = polls || strings.HasSuffix(t.what, "poll")
		}
	}
	// If a process visibly polls, it waits for something else, as apt-get waits for its downloads.
	// The hidden processes then work for it, and do not wait for the terminal.
	if hidden && !(polls && m.Known && !m.Raw && !m.NoEcho) {
		v.hidden, v.hiddenModes = true, m.Modes
	}
}

// findWaitsOf adds the waits that follow from what a thread of the process with that index waits
// for: its own, or, if it is a relay's, those of threads behind the relay. hidden reports that it
// is unknown what the thread waits for.
func (v *snapshot) findWaitsOf(index int, t thread, tty int, turns int64) (hidden bool) {
	p, m := &v.processes[index], v.modes[tty]
	ok := p.waitsForTerminal(t, m)
	unseen := t.what == "?" && p.State != "R" && p.TTY != 0
	if !ok && !unseen {
		return false
	}
	if v.isRelay(index, t, m) {
		v.relays[index] = true
		v.findWaitsBehind(index, index, turns+t.turns)
		return false
	}
	if ok && !(m.Raw && v.hasJustForked(index)) {
		v.found = append(v.found, reading{proc.Wait{PID: p.PID, TID: t.id, Name: p.Name,
			Modes: m.Modes, Turns: turns + t.turns}, index, tty})
	}
	return unseen
}

// mayWaitOn returns the processes that may wait for the terminal: those in its foreground, and for
// the shell's terminal those that have no controlling terminal and may have this one open (su -c).
func (v *snapshot) mayWaitOn(tty int) []int {
	if v.foreground == nil {
		v.foreground = map[int][]int{}
		for i := range v.processes {
			switch p := &v.processes[i]; {
			case strings.ContainsAny(p.State, "TtZX"):
			case p.TTY == 0:
				shell := v.processes[0].TTY
				v.foreground[shell] = append(v.foreground[shell], i)
			case p.Group == p.Foreground:
				v.foreground[p.TTY] = append(v.foreground[p.TTY], i)
			}
		}
	}
	return v.foreground[tty]
}

// waitsForTerminal reports whether a thread of the process waits for a terminal in these modes.
func (p *process) waitsForTerminal(t thread, m terminalModes) bool {
	switch t.what {
	case "woken":
		return p.TTY != 0
	case "tty", "asks":
		return true
	case "one", "hpoll", "poll":
		return m.Raw || p.isAsh()
	}
	return false
}

// isAsh reports whether the process may be a busybox ash. Its builtin read polls the terminal, and
// nothing else.
func (p *process) isAsh() bool {
	switch strings.TrimPrefix(p.Name, "-") {
	case "ash", "sh", "busybox":
		return true
	}
	return false
}

// isRelay reports whether the thread passes on the input of its terminal, which is in the modes m.
// A relay (sudo with use_pty, script, expect) has its terminal in raw mode, and runs its program on
// another one.
func (v *snapshot) isRelay(index int, t thread, m terminalModes) bool {
	// A shell that reads keys is no relay, although its jobs may have other terminals.
	if !m.Raw || index == 0 && t.what == "tty" {
		return false
	}
	return v.below[index].hasOther(v.processes[index].TTY)
}

// findWaitsBehind adds the waits for the terminals of the descendants of the process with the index
// from, without those for the terminal of the relay. A process to which one relay passes its input
// is left out for the relays behind that one.
func (v *snapshot) findWaitsBehind(from, relay int, turns int64) {
	for _, i := range v.children[from] {
		if v.passed[i] {
			continue
		}
		v.passed[i] = true
		p := &v.processes[i]
		if p.TTY != v.processes[relay].TTY && p.Group == p.Foreground {
			v.findWaits(p.TTY, turns)
		}
		v.findWaitsBehind(i, relay, turns)
	}
}

// hasJustForked reports whether the process has forked within the last second and its child has not
// yet called exec. A relay is in that state before its program has its own terminal.
func (v *snapshot) hasJustForked(index int) bool {
	parent := &v.processes[index]
	for _, i := range v.children[index] {
		p := &v.processes[i]
		if p.Image == parent.Image && p.Image != "" && p.runs() {
			return v.uptime > 0 &&
				p.Start > int64((v.uptime-time.Second).Seconds()*proc.TicksPerSecond)
		}
	}
	return false
}
