package procfs

// isLive reports whether the process can go on by itself. If it can go on only when another one
// does, isLive adds an edge.
//
// The rule was found by looking at programs that ask, and at programs that read their terminal
// while they work. docs/how-it-knows.md has it in words.
func (c *command) isLive(p *process, e *ends) bool {
	if p.active > 0 || p.hidden || p.tooLarge {
		return true
	}
	leader, clocks := p.leader(), 0
	// ticks says that a thread that is not the leader has a time limit. wakes says that a child may
	// wake a thread.
	ticks, wakes := false, false
	for i := range p.threads {
		t := &p.threads[i]
		switch {
		case t.blocked():
		case t.state != "S" && t.state != "", t.state == "S" && t.call == nil:
			return true
		case t.state == "": // it has ended
		case t.isFutex():
			switch {
			case !t.limited:
			case t.id == p.PID:
				return true
			case t.isClock() && clocks == 0:
				clocks++
			case t.id == leader:
				return true
			default:
				ticks = true
			}
		case t.kind.waitsForSignal():
			if t.limited || t.timer || t.kind != childCall && c.isOnlyTimed(p, t) {
				return true
			}
			wakes = true
		case t.kind == sleepCall || t.kind == clockSleepCall:
			if t.limited {
				return true
			}
		case !t.kind.hasFiles() || !t.requestKnown || t.request.more || t.limited:
			return true
		default:
			live, wakesToo := c.inspectFiles(p, t, e)
			if live {
				return true
			}
			wakes = wakes || wakesToo
		}
	}
	// A child can only make its parent live. Each thread that waits for children waits for all.
	for _, child := range c.children[p.PID] {
		if wakes && !c.addEdge(p.PID, child) {
			return true
		}
	}
	return ticks && c.isReader(p) && !c.readsIn(p, leader)
}

// isOnlyTimed reports whether a thread that waits for a signal can only be waiting for a timer that
// /proc does not show, such as that of alarm(2): it is the main thread, and there is no child.
func (c *command) isOnlyTimed(p *process, t *thread) bool {
	return t.id == p.PID && len(c.children[p.PID]) == 0
}

// inspectFiles reports in live whether a file that the thread waits for may become ready without
// the command. For files that the command itself makes ready, it adds edges, and reports in wakes
// whether a child may make them ready.
func (c *command) inspectFiles(p *process, t *thread, e *ends) (live, wakes bool) {
	if len(t.files) == 0 { // a poll of nothing, as pause(2)
		return c.isOnlyTimed(p, t), true
	}
	reads, own := false, false
	for i := range t.files {
		f := &t.files[i]
		switch f.kind {
		case terminalFile:
			reading := t.kind == readCall || t.kind == sendfileCall
			if f.out || !c.view.searched[f.terminal] ||
				reading && c.view.modes[f.terminal].timed {
				return true, false
			}
			reads = reads || f.in
			continue
		case pipeFile, socketFile:
			pids, ok := e.of(f)
			if !ok {
				return true, false
			}
			for _, pid := range pids {
				if !c.addEdge(p.PID, pid) {
					return true, false
				}
			}
		case signalFile, masterFile:
			wakes = true
		case ownFile:
		default:
			return true, false
		}
		own = true
	}
	// The end of a child wakes an event loop, by a signal.
	return false, wakes || own && reads
}

// isReader reports whether a thread of the process reads a terminal of the command.
func (c *command) isReader(p *process) bool { return len(c.readers(p)) > 0 }

// readsIn reports whether the thread reads a terminal of the command.
func (c *command) readsIn(p *process, tid int) bool {
	for _, reader := range c.readers(p) {
		if reader == tid {
			return true
		}
	}
	return false
}

// readers returns the threads of the process that read a terminal of the command.
func (c *command) readers(p *process) (tids []int) {
	for _, w := range p.waits {
		for _, t := range w.inputs {
			if c.view.searched[t] {
				tids = append(tids, w.tid)
			}
		}
	}
	return tids
}
