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

// How the answer of control.sh's look becomes a proc.Look. The engine looks every few milliseconds:
// there is one question to the shell, and what would cost a process each time, and has not changed,
// is not asked for again.

// A memo is what the last look at a process has learned.
type memo struct {
	image string   // the words of its P line that change with exec
	args  []string // as long as image is the same
	turns int64    // of its main thread
	reads string   // as long as that has not run
}

// maxMemos bounds what is kept of processes at whose end nobody looked, and memoMax what is kept of
// one: what is longer is asked for again.
const (
	maxMemos = 256
	memoMax  = 64 << 10
)

// own returns a copy that holds no more than itself of an answer; nothing, if it is too large.
func (m memo) own() memo {
	size := len(m.image) + len(m.reads)
	for _, arg := range m.args {
		size += len(arg) + bounded.StringCost
	}
	if size > memoMax {
		return memo{}
	}
	args := make([]string, len(m.args))
	for i, arg := range m.args {
		args[i] = strings.Clone(arg)
	}
	return memo{strings.Clone(m.image), args, m.turns, strings.Clone(m.reads)}
}

func (c *Processes) memo(pid int) memo {
	c.memory.Lock()
	defer c.memory.Unlock()
	return c.memos[pid]
}

func (c *Processes) keep(pid int, m memo, gone bool) {
	c.memory.Lock()
	defer c.memory.Unlock()
	if len(c.memos) >= maxMemos {
		clear(c.memos)
	}
	if c.memos[pid] = m.own(); gone {
		delete(c.memos, pid)
	}
}

// Look is hostapi.Processes.Look.
func (c *Processes) Look(ctx context.Context, pid int) (proc.Look, error) {
	m := c.memo(pid)
	call := "look " + itoa(pid) + " " + shellquote.Quote(m.image)
	// 0: the kernel does not count them. "": it ran, and may have begun to read in the same turn
	if m.turns > 0 && m.reads != "" {
		call += " " + itoa(int(m.turns))
	}
	out, err := c.do(ctx, call)
	if err != nil {
		return proc.Look{}, err
	}
	v, err := parseLook(out, &m)
	if err != nil {
		return proc.Look{}, err
	}
	look := v.look(pid)
	c.keep(pid, m, look.Gone)
	if !look.Gone && len(v.ps) > 0 {
		look.Reads, look.Args = m.reads, m.args
	}
	return look, nil
}

// A sight is what one answer of look says.
type sight struct {
	gone   bool
	ps     []seen // none before its parent
	modes  map[int]terminalModes
	uptime time.Duration

	parents     []int        // of each of ps, the place of its parent among them; -1: none
	visited     map[int]bool // terminals
	hidden      bool
	hiddenModes proc.Modes // of the terminal where that is
}

// A seen is a process of a sight.
type seen struct {
	proc.Process
	threads []seenThread // none: it is in the background
	turns   int64        // of all threads, or of the main thread of one in the background
}

type seenThread struct {
	id    int
	turns int64
	what  string // the last word of a T line
}

// lookMax bounds the memory for the lines of a look, and with it the time that it takes to find out
// who waits: more than 10,000 processes and threads.
const lookMax = 2 << 20

// parseLook reads the lines of look, and brings the memo up to date.
func parseLook(out string, m *memo) (*sight, error) {
	v := &sight{modes: map[int]terminalModes{}, visited: map[int]bool{}}
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
				if v.ps = append(v.ps, seen{Process: p}); len(v.ps) == 1 {
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
	if len(v.ps) > 0 {
		m.turns = v.ps[0].mainTurns()
	}
	if told {
		var err error
		if m.args, err = unswapped(args); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// addTurns reads the words of a B or a T line, which belongs to the last process.
func (v *sight) addTurns(f []string) {
	if len(v.ps) == 0 {
		return
	}
	p := &v.ps[len(v.ps)-1]
	switch {
	case f[0] == "B" && len(f) == 2:
		p.turns = atoi64(f[1])
		return
	case f[0] != "T" || len(f) != 4:
		return
	}
	t := seenThread{id: atoi(f[1]), turns: atoi64(f[2]), what: f[3]}
	p.threads, p.turns = append(p.threads, t), p.turns+t.turns
}

func (p *seen) mainTurns() int64 {
	for _, t := range p.threads {
		if t.id == p.PID {
			return t.turns
		}
	}
	return 0
}

// look says what there is to say about the process, but for what it reads and its arguments.
func (v *sight) look(pid int) (look proc.Look) {
	if v.gone || len(v.ps) > 0 && v.ps[0].Ended() {
		return proc.Look{Gone: true}
	}
	if len(v.ps) == 0 || v.ps[0].PID != pid {
		return look // a system without /proc
	}
	places := make(map[int]int, len(v.ps))
	for i := range v.ps {
		parent, ok := places[v.ps[i].Parent]
		if !ok {
			parent = -1
		}
		v.parents = append(v.parents, parent)
		places[v.ps[i].PID] = i
	}
	p := &v.ps[0]
	look.Turns, look.Image, look.TTY = p.mainTurns(), p.Image, p.TTY
	look.Stopped, look.Foreground = p.State == "T", max(p.Foreground, 0)
	look.Modes = v.modes[p.TTY].Modes
	for i := range v.ps {
		look.Total += v.ps[i].turns
		look.Runs = look.Runs || v.ps[i].runs()
	}
	look.Waits = v.waits(p.TTY, 0)
	look.Hidden, look.HiddenModes = v.hidden, v.hiddenModes
	return look
}

// runs reports whether the process runs, is about to, or waits for a disk.
func (p *seen) runs() bool {
	return p.State == "R" || p.State == "D" ||
		slices.ContainsFunc(p.threads, func(t seenThread) bool { return t.what == "run" })
}

// waits returns who waits for a terminal. A relay does not wait itself: it brings its input to
// another terminal, and whoever waits for that one waits. turns are those of the relays that led
// here.
func (v *sight) waits(tty int, turns int64) (found []proc.Wait) {
	if tty == 0 || v.visited[tty] {
		return nil
	}
	v.visited[tty] = true
	m := v.modes[tty]
	hidden, polls := false, false
	for i := range v.ps {
		p := &v.ps[i]
		if !v.at(p, tty) {
			continue
		}
		for _, t := range p.threads {
			waits, unseen := v.waitOf(p, t, m, turns)
			found = append(found, waits...)
			hidden = hidden || unseen
			polls = polls || strings.HasSuffix(t.what, "poll")
		}
	}
	// A process that shows that it polls waits for something else, as apt-get waits for its
	// downloads, and the hidden ones work for it.
	if hidden && !(polls && m.Known && !m.Raw && !m.NoEcho) {
		v.hidden, v.hiddenModes = true, m.Modes
	}
	return found
}

// waitOf returns who waits because the thread waits for its terminal, which is in these modes: the
// thread, or those behind a relay. hidden says that nobody knows what the thread waits for.
func (v *sight) waitOf(p *seen, t seenThread, m terminalModes,
	turns int64) (found []proc.Wait, hidden bool) {
	alone, ok := p.waitsIn(t, m)
	unseen := t.what == "?" && p.State != "R" && p.TTY != 0
	if !ok && !unseen {
		return nil, false
	}
	if inner := v.behind(p, t, m); len(inner) > 0 {
		for _, tty := range inner {
			found = append(found, v.waits(tty, turns+t.turns)...)
		}
		return found, false
	}
	if ok && !(m.Raw && v.forks(p)) {
		found = []proc.Wait{{PID: p.PID, TID: t.id, Name: p.Name, Modes: m.Modes,
			Turns: turns + t.turns, Alone: alone}}
	}
	return found, unseen
}

// at reports whether the process may wait for the terminal: one in its foreground; or one without a
// terminal of its own, which has it open (su -c).
func (v *sight) at(p *seen, tty int) bool {
	if strings.ContainsAny(p.State, "TtZX") {
		return false
	}
	return p.TTY == tty && p.Group == p.Foreground || p.TTY == 0 && tty == v.ps[0].TTY
}

// waitsIn reports whether a thread of the process waits for a terminal in these modes, and whether
// for it alone.
func (p *seen) waitsIn(t seenThread, m terminalModes) (alone, ok bool) {
	works := p.runs()
	switch t.what {
	case "woken":
		return !works && !m.timed, p.TTY != 0
	case "tty":
		return !works && !m.timed, true
	case "asks":
		return false, true
	case "one":
		return !works, m.Raw || p.isAsh()
	case "hpoll", "poll":
		return false, m.Raw || p.isAsh()
	}
	return false, false
}

// isAsh reports whether the process may be a busybox ash, whose builtin read polls the terminal. It
// polls nothing else.
func (p *seen) isAsh() bool {
	switch strings.TrimPrefix(p.Name, "-") {
	case "ash", "sh", "busybox":
		return true
	}
	return false
}

// behind returns the terminals to which the thread may bring the input of one in these modes: a
// relay (sudo with use_pty, script, expect) has its terminal in raw mode and runs its program on
// another one.
func (v *sight) behind(p *seen, t seenThread, m terminalModes) (inner []int) {
	// a shell that reads keys has jobs, and jobs have terminals
	if !m.Raw || p.PID == v.ps[0].PID && t.what == "tty" {
		return nil
	}
	family := make([]bool, len(v.ps))
	for i := range v.ps {
		q := &v.ps[i]
		if q == p {
			family[i] = true
			continue
		}
		if parent := v.parents[i]; parent < 0 || !family[parent] {
			continue
		}
		family[i] = true
		if q.TTY != 0 && q.TTY != p.TTY && q.Group == q.Foreground &&
			!slices.Contains(inner, q.TTY) {
			inner = append(inner, q.TTY)
		}
	}
	return inner
}

// forks reports whether the process has just forked and its child has not yet called exec. A relay
// looks like that before its program is on its own terminal.
func (v *sight) forks(parent *seen) bool {
	for i := range v.ps {
		if p := &v.ps[i]; p.Parent == parent.PID && p.Image == parent.Image && p.Image != "" &&
			p.runs() {
			return v.uptime > 0 &&
				p.Start > int64((v.uptime-time.Second).Seconds()*proc.TicksPerSecond)
		}
	}
	return false
}
