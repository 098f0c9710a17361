package procfs

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"golang.org/x/sys/unix"
)

// Look looks at the process, the leader of a terminal's session, and at whoever waits for that
// terminal.
//
// It asks the process's descendants and the other processes of its session, each time. If none of
// them waits, it asks all other processes too, the longer one has been there the more rarely, but
// at least once a second (see census).
func Look(pid int) proc.Look {
	v := &view{r: newReader(), pid: pid, byID: map[int]*process{}, modes: map[pts]modes{}}
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
		withTerminal(v.tty.number, settle)
	}
	v.family(pid, everyone.members(v))
	if main := v.byID[pid]; main != nil {
		look.Turns, look.Reads = main.mainTurns, main.reads
	}
	for _, p := range v.processes {
		look.Total += p.turns
		look.Runs = look.Runs || p.active > 0
	}
	if v.tty.number != 0 {
		look.Waits = v.waits(v.tty, 0, map[pts]bool{})
		look.Runs = look.Runs || v.stirs
		look.Modes = v.modesOf(v.tty, pid).Modes
	}
	look.Hidden, look.HiddenModes = v.hidden()
	return look
}

// A view is what one look sees.
type view struct {
	r       *reader
	pid     int
	session int    // the process's
	tty     pts    // the process's
	devpts  uint64 // the device of /dev/pts here; 0: there is none

	stirs     bool       // a stranger runs that waited for the process's terminal a while ago
	processes []*process // no stranger, and none before its parent
	byID      map[int]*process
	modes     map[pts]modes
}

// A process is what a look sees of one.
type process struct {
	stat
	stranger  bool
	tty       pts   // its controlling terminal
	turns     int64 // of all threads
	mainTurns int64
	active    int    // how many threads run, or cannot be interrupted
	reads     string // proc.Look.Reads
	waits     []wait
	hidden    bool // what a sleeping thread waits for is not shown
}

func deviceOf(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return uint64(st.Dev)
}

// terminalOf returns the controlling terminal of a process. If the kernel says that there is none
// (gVisor; or another process has taken the terminal, as setsid -c does), that of the view's
// process is the one that it has open.
func (v *view) terminalOf(s stat) pts {
	dir := "/proc/" + strconv.Itoa(s.PID)
	if s.TTY == 0 && s.PID == v.pid {
		for _, fd := range []string{"2", "1", "0"} {
			var st unix.Stat_t
			if unix.Stat(dir+"/fd/"+fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
				continue
			}
			if d := (device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}); d.slave() {
				return pts{uint64(st.Dev), d.number()}
			}
		}
	}
	switch {
	case s.TTY == 0 || !terminal(s.TTY).slave():
		return pts{}
	case s.Session == v.session && v.tty.number == s.TTY: // a terminal is one session's
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

// family adds the process and its descendants, and then others, without theirs.
func (v *view) family(pid int, others []int) {
	var parents map[int][]int
	self := strconv.Itoa(os.Getpid())
	// a kernel without CONFIG_PROC_CHILDREN
	if unix.Access("/proc/self/task/"+self+"/children", unix.F_OK) != nil {
		parents = v.r.parents()
	}
	for pids := []int{pid}; len(pids) > 0; {
		var next []int
		for _, pid := range pids {
			p := v.add(pid)
			if p == nil {
				continue
			}
			if parents != nil {
				next = append(next, parents[pid]...)
				continue
			}
			dir := "/proc/" + strconv.Itoa(pid)
			for _, tid := range p.threads(dir) {
				next = v.r.children(next, dir+"/task/"+strconv.Itoa(tid))
			}
		}
		pids = next
	}
	for _, pid := range others {
		v.add(pid)
	}
}

// add adds the process and looks at it, unless it is there already or has ended.
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
	v.threads(p)
	// A process that is not in the foreground would be stopped if it read its own terminal, and
	// does not if it polls it.
	if p.background() && pid != v.pid {
		return p
	}
	v.see(p)
	return p
}

func (p *process) background() bool {
	return p.TTY != 0 && p.Foreground > 0 && p.Group != p.Foreground
}

// threads counts the turns of the process's threads, and those that run.
func (v *view) threads(p *process) {
	dir := "/proc/" + strconv.Itoa(p.PID)
	for _, tid := range p.stat.threads(dir) {
		task := dir + "/task/" + strconv.Itoa(tid)
		turns, _ := strconv.ParseInt(v.r.word(task+"/schedstat", 2), 10, 64)
		p.turns += turns
		if tid == p.PID {
			p.mainTurns = turns
		}
		if state := v.state(p, task); state == "R" || state == "D" {
			p.active++
		}
	}
}

// state returns the state of a thread; the process's is that of the main thread.
func (v *view) state(p *process, task string) string {
	if p.threadCount <= 1 {
		return p.State
	}
	line, err := v.r.read(task + "/stat")
	if err != nil {
		return ""
	}
	s, _ := parseStat(line)
	return s.State
}

// see finds out what the process's sleeping threads wait for; as its user, if the kernel shows it
// to nobody else.
func (v *view) see(p *process) {
	if v.seeNow(p); p.hidden {
		as("/proc/"+strconv.Itoa(p.PID), func() { v.seeNow(p) })
	}
}

func (v *view) seeNow(p *process) {
	p.waits, p.hidden, p.reads = nil, false, ""
	dir := "/proc/" + strconv.Itoa(p.PID)
	for _, tid := range p.stat.threads(dir) {
		task := dir + "/task/" + strconv.Itoa(tid)
		if v.state(p, task) != "S" {
			continue
		}
		line, err := v.r.read(task + "/syscall")
		if err != nil {
			// Where it is not the process that is gone, the kernel does not tell (EPERM, EACCES),
			// or has no such file.
			p.hidden = p.hidden || !errors.Is(err, unix.ESRCH) &&
				unix.Access(task, unix.F_OK) == nil
			if p.hidden && tid == v.pid && errors.Is(err, unix.ENOENT) {
				v.inferShell(p, task)
			}
			continue
		}
		if w, ok := v.wait(p, task, line); ok {
			w.tid = tid
			w.turns, _ = strconv.ParseInt(v.r.word(task+"/schedstat", 2), 10, 64)
			p.waits = append(p.waits, w)
		}
		if tid == v.pid {
			p.reads = v.source(task, line)
		}
	}
}

// wait returns what a thread waits for, given what its syscall file says, if it waits for a
// terminal.
func (v *view) wait(p *process, task string, line []byte) (w wait, ok bool) {
	call := parseCall(words(line))
	if call == nil {
		return w, false
	}
	k := kindOf(call, func() bool { return wide(task) })
	if k == other {
		return w, false
	}
	var only uint64
	if p.stranger {
		only = v.tty.dev
	}
	q, ok := v.r.request(task, k, call, only)
	if !ok || len(q.input) == 0 {
		return w, false
	}
	if k != reads && k != sends {
		q = v.r.within(task, q, only, maxNests)
	}
	w = q.resolve(task, func() pts { return p.tty })
	w.alone = w.alone && !k.limited(call)
	w.reading = k == reads || k == sends
	return w, len(w.inputs) > 0
}

// source returns what a thread is blocked in reading, if that is not the terminal.
func (v *view) source(task string, line []byte) string {
	call := parseCall(words(line))
	if call == nil || kindOf(call, func() bool { return wide(task) }) != reads {
		return ""
	}
	q := request{input: call.Args[:1]}
	if w := q.resolve(task, func() pts {
		return v.tty
	}); len(w.inputs) == 1 && w.inputs[0] == v.tty {
		return ""
	}
	name, _ := os.Readlink(task + "/fd/" + strconv.FormatUint(call.Args[0], 10))
	return name
}

func words(line []byte) []string {
	var words []string
	for word := range bytes.FieldsSeq(line) {
		words = append(words, string(word))
	}
	return words
}
