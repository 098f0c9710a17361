package procfs

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// Look looks at a process that leads the session of a terminal, and at all processes that wait for
// that terminal.
//
// Each call looks at the process, its descendants and the other processes of its session. If none
// of them waits for the terminal, the call looks at other processes too: at new ones often, and at
// each at least once a second (see census).
func Look(pid int) proc.Look {
	v := &view{r: newReader(), pid: pid, byID: map[int]*process{},
		children: map[int][]*process{}, modes: map[pts]modes{}, searched: map[pts]bool{},
		relays: map[int]*process{}}
	s, ok := v.r.stat(pid)
	if !ok || s.State == "X" || s.State == "Z" {
		return proc.Look{Gone: true}
	}
	s.Process = v.r.withImage(s.Process)
	v.devpts = deviceOf("/dev/pts")
	v.session = s.Session
	v.tty = v.terminalOf(s)
	look := proc.Look{
		Stopped: s.State == "T", Foreground: max(s.Foreground, 0), Image: s.Image,
		TTY:  v.tty.number,
		Args: v.r.args("/proc/" + strconv.Itoa(pid)),
	}
	if v.tty.dev == v.devpts {
		withTerminal(v.tty.number, processTyped)
	}
	v.addTree(pid, allProcesses.members(v))
	if main := v.byID[pid]; main != nil {
		look.Turns, look.Reads = main.mainTurns, main.reads
	}
	for _, p := range v.processes {
		look.Total += p.turns
		look.Runs = look.Runs || p.active > 0
	}
	var found []reading
	if v.tty.number != 0 {
		found = v.findWaits(v.tty, 0)
		look.Runs = look.Runs || v.strangerRuns
		look.Modes = v.modesOf(v.tty, pid).Modes
	}
	look.Hidden, look.HiddenModes = v.hiddenWaiter()
	look.Waits = v.judge(found, look.Foreground)
	return look
}

// Shell describes a shell that has just executed a line from its pipe, its standard input. It
// returns the zero value if something is not known, as in gVisor.
func Shell(pid int) proc.Shell {
	r, dir := newReader(), "/proc/"+strconv.Itoa(pid)
	s, ok := r.stat(pid)
	if !ok || !ttyDevice(s.TTY).isSlave() {
		return proc.Shell{}
	}
	link := func() (name string) {
		name, _ = os.Readlink(dir + "/fd/0")
		return name
	}
	shell := proc.Shell{TTY: s.TTY, Reads: link(), Image: r.withImage(s.Process).Image}
	if shell.Reads == "" {
		asOwnerOf(dir, func() { shell.Reads = link() })
	}
	if shell.Reads == "" || shell.Image == "" {
		return proc.Shell{}
	}
	return shell
}

// A view is what one look sees.
type view struct {
	r       *reader
	pid     int
	session int    // of the process pid
	tty     pts    // of the process pid
	devpts  uint64 // the device number of this process's /dev/pts; 0: there is none

	// strangerRuns says that a process outside the view runs, and waited for tty a short time ago.
	strangerRuns bool
	processes    []*process // each after its parent; strangers are not among them
	byID         map[int]*process
	children     map[int][]*process // by the parent's id: of the first placed processes
	placed       int
	modes        map[pts]modes
	searched     map[pts]bool     // the terminals for whose readers findWaits has looked
	relays       map[int]*process // those that findWaits has passed
	requested    int              // how many descriptors calls wait for, as far as has been read
}

// A process is what a look sees of a process.
type process struct {
	stat
	stranger  bool   // it is outside the view
	tty       pts    // its controlling terminal
	turns     int64  // of all threads
	mainTurns int64  // of the main thread
	active    int    // how many threads run, or sleep uninterruptibly
	reads     string // as proc.Look.Reads
	threads   []thread
	waits     []wait // for terminals
	hidden    bool   // the kernel does not show what a sleeping thread waits for
	ownerOnly bool   // the kernel shows that only to the process's user
	tooLarge  bool   // not all threads are in threads
	waitsRead bool   // readWaits has been called
	class     uint8  // 64 or 32 bits, as far as is64Bit has found out
}

func deviceOf(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return uint64(st.Dev)
}

// terminalOf returns the controlling terminal of a process. The kernel may say that the view's
// process has none: gVisor always does, and Linux does after another process has taken the
// terminal, as setsid -c does. Then it is the terminal that the process has open as its standard
// error, output or input.
func (v *view) terminalOf(s stat) pts {
	dir := "/proc/" + strconv.Itoa(s.PID)
	if s.TTY == 0 && s.PID == v.pid {
		for _, fd := range []string{"2", "1", "0"} {
			var st unix.Stat_t
			if unix.Stat(dir+"/fd/"+fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
				continue
			}
			d := device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}
			if d.isSlave() {
				return pts{uint64(st.Dev), d.ttyNumber()}
			}
		}
	}
	switch {
	case s.TTY == 0 || !ttyDevice(s.TTY).isSlave():
		return pts{}
	case s.Session == v.session && v.tty.number == s.TTY: // a session has one terminal
		return v.tty
	}
	if dev := deviceOf(dir + "/root/dev/pts"); dev != 0 {
		return pts{dev, s.TTY}
	}
	return pts{v.devpts, s.TTY}
}

// args returns the arguments of the process with that directory.
func (r *reader) args(dir string) []string {
	line, err := r.read(dir + "/cmdline")
	if err != nil || len(line) == 0 {
		return nil
	}
	var args []string
	for word := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
		args = append(args, string(word))
	}
	return args
}

// addTree adds the process and its descendants, and then others without their descendants.
func (v *view) addTree(pid int, others []int) {
	byParent := v.r.childrenByParent()
	for pids := []int{pid}; len(pids) > 0; {
		var next []int
		for _, pid := range pids {
			if p := v.add(pid); p != nil {
				next = v.r.childrenOf(next, &p.stat, byParent)
			}
		}
		pids = next
	}
	for _, pid := range others {
		v.add(pid)
	}
}

// add looks at the process and adds it. It returns nil if the process has been added before, or has
// ended.
func (v *view) add(pid int) *process {
	if v.byID[pid] != nil {
		return nil
	}
	s, ok := v.r.stat(pid)
	if !ok {
		return nil
	}
	p := &process{stat: s, tty: v.terminalOf(s)}
	v.byID[pid] = p
	v.processes = append(v.processes, p)
	v.countTurns(p)
	// A background process does not wait for its own terminal: a read would stop the process, even
	// after a poll has said that there is input.
	if p.background() && pid != v.pid {
		return p
	}
	v.readWaits(p)
	return p
}

func (p *process) background() bool {
	return p.TTY != 0 && p.Foreground > 0 && p.Group != p.Foreground
}

// countTurns sets p.turns, p.mainTurns and p.active.
func (v *view) countTurns(p *process) {
	v.listThreads(p)
	for _, t := range p.threads {
		turns, _ := strconv.ParseInt(v.r.word(p.task(t.id)+"/schedstat", 2), 10, 64)
		p.turns += turns
		if t.id == p.PID {
			p.mainTurns = turns
		}
		if t.state == "R" || t.state == "D" {
			p.active++
		}
	}
	if p.tooLarge {
		p.active++ // which is likely
	}
}

// task returns the directory of a thread.
func (p *process) task(tid int) string {
	return "/proc/" + strconv.Itoa(p.PID) + "/task/" + strconv.Itoa(tid)
}

// listThreads sets p.threads, with the states of the threads, unless they are set.
func (v *view) listThreads(p *process) {
	if p.threads != nil {
		return
	}
	ids := p.stat.threadIDs("/proc/" + strconv.Itoa(p.PID))
	if p.tooLarge = len(ids) > maxThreads; p.tooLarge {
		ids = ids[:maxThreads]
	}
	p.threads = make([]thread, len(ids))
	for i, id := range ids {
		t := &p.threads[i]
		t.id = id
		t.state, t.start = v.threadState(p, p.task(id))
	}
}

// threadState returns the state of the thread with that directory, and when the thread started.
func (v *view) threadState(p *process, task string) (state string, start int64) {
	if p.threadCount <= 1 {
		return p.State, p.Start
	}
	line, err := v.r.read(task + "/stat")
	if err != nil {
		return "", 0
	}
	s, _ := parseStat(line)
	return s.State, s.Start
}

// readWaits finds out what the process's sleeping threads wait for. If the kernel shows that only
// to the process's user, readWaits asks as that user.
func (v *view) readWaits(p *process) {
	if v.readWaitsNow(p); p.hidden {
		asOwnerOf("/proc/"+strconv.Itoa(p.PID), func() {
			v.readWaitsNow(p)
			p.ownerOnly = true
		})
	}
}

func (v *view) readWaitsNow(p *process) {
	p.waits, p.hidden, p.reads, p.waitsRead = nil, false, "", true
	v.listThreads(p)
	for i := range p.threads {
		if t := &p.threads[i]; t.state == "S" {
			v.readWait(p, t, p.task(t.id))
		}
	}
}

// readWait finds out what a sleeping thread waits for.
func (v *view) readWait(p *process, t *thread, task string) {
	line, err := v.r.read(task + "/syscall")
	if err != nil {
		// The thread has ended, or the kernel does not show its call (EPERM, EACCES), or the kernel
		// has no such file (gVisor).
		p.hidden = p.hidden || !errors.Is(err, unix.ESRCH) && unix.Access(task, unix.F_OK) == nil
		if p.hidden && t.id == v.pid && errors.Is(err, unix.ENOENT) {
			v.inferShell(p, task)
		}
		return
	}
	if t.call = parseCall(fieldsOf(line)); t.call == nil {
		return
	}
	if t.kind = kindOf(t.call, func() bool { return p.is64Bit(task) }); t.kind == restartCall {
		t.kind = restarted(v.r.word(task+"/wchan", 0))
	}
	if w, ok := v.terminalWait(p, t, task); ok {
		w.tid = t.id
		w.turns, _ = strconv.ParseInt(v.r.word(task+"/schedstat", 2), 10, 64)
		p.waits = append(p.waits, w)
	}
	if t.id == v.pid {
		p.reads = v.readSource(t, task)
	}
}

// terminalWait returns what a thread waits for, and whether a terminal is among it.
func (v *view) terminalWait(p *process, t *thread, task string) (w wait, ok bool) {
	if !t.kind.hasFiles() || v.requested > maxDescriptors {
		return w, false
	}
	var onlyDev uint64
	if p.stranger {
		onlyDev = v.tty.dev
	}
	if t.request, t.requestKnown = v.r.requestOf(task, t.kind, t.call, onlyDev); !t.requestKnown {
		return w, false
	}
	reading := t.kind == readCall || t.kind == sendfileCall
	if !reading && t.request.hasInput() {
		t.request = v.r.expandEpolls(task, t.request, onlyDev, maxEpollDepth)
	}
	v.requested += len(t.request.files)
	if !t.request.hasInput() || t.kind == receiveCall {
		return w, false
	}
	w = t.request.resolve(task, func() pts { return p.tty })
	w.reading = reading
	return w, len(w.inputs) > 0
}

// readSource names the file that a thread is blocked in reading. It returns "" if the thread is not
// blocked in a read, or if it reads the view's terminal.
func (v *view) readSource(t *thread, task string) string {
	if t.kind != readCall {
		return ""
	}
	if w := t.request.resolve(task, func() pts {
		return v.tty
	}); len(w.inputs) == 1 && w.inputs[0] == v.tty {
		return ""
	}
	name, _ := os.Readlink(task + "/fd/" + strconv.FormatUint(t.call.Args[0], 10))
	return name
}

func fieldsOf(line []byte) []string {
	var words []string
	for word := range bytes.FieldsSeq(line) {
		words = append(words, string(word))
	}
	return words
}
