package shellbox

import (
	"strconv"
	"strings"
)

// A process is what /proc says about one.
type process struct {
	pid, ppid, pgrp, session int
	state                    string
	tty, tpgid               int
	start                    int64  // in clock ticks (1/100 s) since the machine's start
	startcode                string // changes with exec
	comm                     string
	threads                  []thread // if it is in its terminal's foreground process group
}

// A thread is what /proc says about one.
type thread struct {
	tid    int
	turns  string
	reads  bool // it is blocked in a read of its terminal
	closed bool // its system call is not for us to see
	wchan  string
	call   []string
}

// polls reports whether the thread is blocked in poll, select or epoll_wait.
func (t *thread) polls() bool {
	return strings.Contains(t.wchan, "poll") || strings.Contains(t.wchan, "select")
}

// pollsOne reports whether the thread is blocked in poll of one descriptor, without end: that is how read, the builtin of busybox
// ash, waits for the terminal.
func (t *thread) pollsOne() bool {
	return t.polls() && len(t.call) >= 4 && t.call[2] == "0x1" && t.call[3] == "0xffffffff"
}

// signature returns the system call with its descriptor, buffer and size: a shell's read of its prompt is the same each time.
func (t *thread) signature() string {
	if t.reads && len(t.call) >= 4 {
		return strings.Join(t.call[:4], " ")
	}
	return ""
}

// do answers a request that control.sh describes. A host may have no answers about processes; that is logged, not fatal.
func (b *Box) do(request string) (string, error) {
	out, err := b.control.do(request)
	if err != nil {
		b.log.Debug("ask about processes", "request", request, "error", err)
	}
	return out, err
}

// tree returns the processes that descend from pid, and itself; nil if the host does not tell.
func (b *Box) tree(pid int) []process {
	out, _ := b.do("tree " + itoa(pid))
	return parseProcesses(out)
}

func parseProcesses(out string) []process {
	var ps []process
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 10 && f[0] == "P": // the name may be empty, or blank
			ps = append(ps, process{
				pid: atoi(f[1]), state: f[2], ppid: atoi(f[3]), pgrp: atoi(f[4]), session: atoi(f[5]), tty: atoi(f[6]), tpgid: atoi(f[7]),
				start: int64(atoi(f[8])), startcode: f[9], comm: strings.Join(f[10:], " "),
			})
		case len(f) >= 5 && f[0] == "T" && len(ps) > 0:
			t := thread{tid: atoi(f[1]), turns: f[2], reads: f[3] == "tty", wchan: f[4], call: f[5:]}
			t.closed = f[3] == "?" && (t.wchan == "0" || t.wchan == "-")
			if f[3] == "?" && t.wchan == "wait_woken" { // system calls are hidden (Yama), but wchan is not
				t.reads = true
			}
			p := &ps[len(ps)-1]
			p.threads = append(p.threads, t)
		}
	}
	return ps
}

// isShell reports whether a process of that name is an interactive shell that takes our lines.
func isShell(comm string) bool {
	switch strings.TrimPrefix(comm, "-") {
	case "bash", "sh", "dash", "ash", "busybox", "ksh", "mksh", "zsh":
		return true
	}
	return false
}

func itoa(n int) string { return strconv.Itoa(n) }

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
