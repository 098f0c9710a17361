package procfs

import (
	"slices"
	"strconv"
	"strings"
)

// Bounds of what one look reads to judge a command. What is beyond them may go on by itself.
const (
	maxThreads = 4096 // of a process
	maxFiles   = 4096 // that the command's threads wait for
	maxEdges   = 1 << 16
)

// A thread is what a look sees of a thread.
type thread struct {
	id      int
	state   string
	start   int64    // as proc.Process.Start
	call    *sysCall // in which it sleeps; nil: none is shown
	kind    callKind
	request request // the descriptors that call waits for

	// requestKnown: request could be read. It is false for calls that name no descriptors.
	requestKnown bool

	// What inspectThreads finds out.
	limited bool // the call ends by itself, before longLimit has passed
	files   []file
	timer   bool // a POSIX timer may send the process a signal
}

// inspectThreads finds out what the process's threads wait for, and how long. It takes from budget
// the number of files that it looks at.
func (v *view) inspectThreads(p *process, budget *int) {
	if !p.waitsRead { // a process in the background
		v.readWaits(p)
	}
	v.asSeen(p, func() {
		m := memory{fd: -1}
		defer m.close()
		for i := range p.threads {
			v.inspectThread(p, &p.threads[i], &m, budget)
		}
	})
}

// asSeen calls f as a user to whom the kernel shows the process.
func (v *view) asSeen(p *process, f func()) {
	if p.ownerOnly {
		asOwnerOf("/proc/"+strconv.Itoa(p.PID), f)
	} else {
		f()
	}
}

func (v *view) inspectThread(p *process, t *thread, m *memory, budget *int) {
	if t.state != "S" || t.call == nil || t.kind == otherCall {
		return
	}
	task := p.task(t.id)
	l := limitOf(t.kind, t.call)
	t.limited = l.passes(m, task, l.address == 0 || hasWideTimes(t.call, p.is64Bit(task)))
	if t.id == p.PID && t.kind.waitsForSignal() {
		timers, _ := v.r.read("/proc/" + strconv.Itoa(p.PID) + "/timers")
		t.timer = strings.Contains(string(timers), "notify: signal/pid")
	}
	if *budget -= len(t.request.files); *budget < 0 {
		t.requestKnown = false
		return
	}
	for _, q := range t.request.files {
		t.files = append(t.files, v.fileOf(p, task, q))
	}
}

// blocked reports whether the thread's state says that it cannot go on.
func (t *thread) blocked() bool { return strings.ContainsAny(t.state, "TtZX") }

// isTick reports whether the thread sleeps in a futex with a time limit.
func (t *thread) isTick() bool { return t.isFutex() && t.limited }

func (t *thread) isFutex() bool {
	return t.call != nil &&
		(t.kind == futexCall || t.kind == futexWaitCall || t.kind == futexWaitvCall)
}

// isClock reports whether the thread sleeps in a futex with a relative time limit. C libraries
// (musl is an exception) wait until a time. A thread that waits for a duration is the clock of a
// language's runtime.
func (t *thread) isClock() bool {
	return t.isTick() && t.kind == futexCall && futexOperation(&t.call.Args) == futexWait
}

// leader returns the thread that the process's main line is in: the main thread. If the main thread
// waits for other threads without a limit, and two or more of these tick, the oldest other thread
// has taken its place, as in a JVM.
func (p *process) leader() int {
	ticks := 0
	var oldest *thread
	main := slices.IndexFunc(p.threads, func(t thread) bool { return t.id == p.PID })
	for i := range p.threads {
		t := &p.threads[i]
		if i == main {
			continue
		}
		if t.isTick() {
			ticks++
		}
		if oldest == nil || t.start < oldest.start || t.start == oldest.start && t.id < oldest.id {
			oldest = t
		}
	}
	if main >= 0 && p.threads[main].isFutex() && !p.threads[main].limited && ticks > 1 {
		return oldest.id
	}
	return p.PID
}
