//go:build linux

package comparison

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A situation is one row of the table.
type situation struct {
	name           string
	needsContainer bool
	try            func(t *testing.T, c column) cell
}

// in makes a situation of what happens in a box of the column's own image.
func in(try func(t *testing.T, w way) cell) func(t *testing.T, c column) cell {
	return func(t *testing.T, c column) cell { return try(t, c.start(t, c.image)) }
}

var situations = []situation{
	{"`cd` and variables stay", false, in(directory)},
	{"a program asks", false, in(question)},
	{"a runaway that ignores Ctrl-C", false, in(runaway)},
	{"a command takes the prompt away", false, in(prompt)},
	{"the connection is cut in a command", false, in(connection)},
	{"a program forges a command's end", false, in(forged)},
	{"100 MB of output", false, in(output)},
	{"an image with nothing but a shell", true, bare},
	{"no network", true, in(directory)}, // all containers here have none
	{"fork: a copy with its shell", true, in(fork)},
}

// patience is how long the ways wait for what they do not know.
const patience = 5 * time.Second

func directory(t *testing.T, w way) cell {
	w.run(t, "cd /proc && X=1", patience)
	return remembers(t, w)
}

func remembers(t *testing.T, w way) cell {
	if r := w.run(t, `echo "$PWD $X"`, patience); strings.TrimSpace(r.output) != "/proc 1" {
		return wrong("no: %q", shortened(r.output))
	}
	return right("yes")
}

func question(t *testing.T, w way) cell {
	r := w.run(t, `read -p 'Name? ' n; echo "hi $n"`, patience)
	switch {
	case r.state == ended:
		return wrong("its input is empty: %q", shortened(r.output))
	case r.state == lost:
		return wrong("%s", r.state)
	}
	took := r.took
	a := w.answer(t, "ann", patience)
	if !strings.Contains(a.output, "hi ann") {
		return wrong("the answer does not arrive: %q", shortened(a.output))
	}
	if r.state != asks {
		return wrong("not known in %.0f s; an answer arrives", took.Seconds())
	}
	return right("known after %.2f s", took.Seconds())
}

func runaway(t *testing.T, w way) cell {
	seconds := fmt.Sprint(1_000_000 + time.Now().UnixNano()%1_000_000) // marks our sleep
	r := w.run(t, "(trap '' INT; while sleep "+seconds+"; do :; done)", 2*time.Second)
	if r.state == ended {
		return wrong("not run: %q", shortened(r.output))
	}
	for range 20 { // what is killed has two seconds to be gone
		if len(processes(seconds)) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	left := processes(seconds)
	defer func() { // what the way has left is ours to end: first the loop, which has no such name
		for _, pid := range left {
			syscall.Kill(parent(pid), syscall.SIGKILL)
		}
		for _, pid := range processes(seconds) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	gone := len(left) == 0
	next := w.run(t, "echo alive", patience)
	lives := strings.TrimSpace(next.output) == "alive" && next.state == ended
	switch {
	case gone && lives:
		return right("killed; the shell lives")
	case gone:
		return wrong("killed, and the shell with it")
	case lives:
		return wrong("runs on, beside what follows")
	}
	return wrong("runs on; the shell takes no command")
}

// processes returns the processes of this machine, its containers' too, that have an argument.
func processes(argument string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		line, _ := os.ReadFile(file)
		if !slices.Contains(strings.Split(string(line), "\x00"), argument) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func parent(pid int) int {
	var name string
	var state byte
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fmt.Sscanf(string(text), "%d %s %c %d", &pid, &name, &state, &pid)
	return pid
}

func prompt(t *testing.T, w way) cell {
	w.run(t, "PS1= PS2= PROMPT_COMMAND=; stty -echo", patience)
	r := w.run(t, "echo works", patience)
	if strings.TrimSpace(r.output) != "works" || r.state != ended {
		return wrong("%s: %q", r.state, shortened(r.output))
	}
	return right("yes")
}

func connection(t *testing.T, w way) cell {
	w.cut(time.Second)
	r := w.run(t, "for i in $(seq 30); do echo $i; sleep 0.1; done", 30*time.Second)
	lines := strings.Count(strings.TrimSpace(r.output)+"\n", "\n")
	if r.state != ended || lines != 30 || r.status != 0 {
		return wrong("%s with %d of 30 lines, status %s", r.state, lines, status(r))
	}
	return right("all 30 lines, status 0")
}

func forged(t *testing.T, w way) cell {
	r := w.run(t, w.forgery(), 10*time.Second)
	switch {
	case r.state != ended:
		return wrong("%s", r.state)
	case r.took < 900*time.Millisecond:
		return wrong("believed after %.1f s, status %s", r.took.Seconds(), status(r))
	case r.status != 7:
		return wrong("status %s", status(r))
	}
	return right("status 7")
}

func output(t *testing.T, w way) cell {
	const size = 100_000_000
	begin := time.Now()
	n := w.flood(t, fmt.Sprintf(`yes "$(printf '%%099d' 7)" | head -c %d`, size))
	took := time.Since(begin).Seconds()
	if n != size {
		return wrong("%.1f MB of it, %.1f s", float64(n)/1e6, took)
	}
	return right("whole, %.1f s", took)
}

func bare(t *testing.T, c column) cell {
	w := c.start(t, bareImage)
	if w == nil {
		return wrong("not there")
	}
	return directory(t, w)
}

func fork(t *testing.T, w way) cell {
	w.run(t, "cd /proc && X=1 && echo file >/tmp/f", patience)
	copied := w.fork(t)
	if copied == nil {
		return wrong("no")
	}
	if r := copied.run(t, "cat /tmp/f", patience); strings.TrimSpace(r.output) != "file" {
		return wrong("no file: %q", shortened(r.output))
	}
	if c := remembers(t, copied); !c.right {
		return wrong("`docker commit`: the files, not the shell")
	}
	return right("files and shell")
}

func status(r reply) string {
	if r.status < 0 {
		return "unknown"
	}
	return fmt.Sprint(r.status)
}

// shortened returns text for a cell.
func shortened(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "|", " ")), " ")
	if r := []rune(text); len(r) > 40 {
		text = string(r[:40]) + "…"
	}
	return text
}
