package shellbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// The questions that control.sh answers, and how its lines are read. Nothing else knows their form.

var _ Processes = (*control)(nil)

// Tree implements Processes.
func (c *control) Tree(ctx context.Context, pids ...int) ([]proc.Process, error) {
	out, err := c.do(ctx, "tree"+words(pids))
	return parseProcesses(out), err
}

// Alive implements Processes.
func (c *control) Alive(ctx context.Context, pids ...int) ([]proc.Process, error) {
	out, err := c.do(ctx, "alive"+words(pids))
	return parseProcesses(out), err
}

// Marked implements Processes.
func (c *control) Marked(ctx context.Context, word string) ([]int, error) {
	out, err := c.do(ctx, "marked '"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	var pids []int
	for _, id := range strings.Fields(out) {
		pids = append(pids, atoi(id))
	}
	return pids, err
}

// Modes implements Processes.
func (c *control) Modes(ctx context.Context, tty int) (proc.Modes, error) {
	out, err := c.do(ctx, "modes "+itoa(tty))
	m := proc.Modes{Known: out != ""}
	for _, word := range strings.Fields(out) { // of stty -a; systems differ in the punctuation
		switch strings.TrimSuffix(word, ";") {
		case "-icanon":
			m.Raw = true
		case "-echo":
			m.NoEcho = true
		}
	}
	return m, err
}

// ResetModes implements Processes.
func (c *control) ResetModes(ctx context.Context, tty int) error {
	_, err := c.do(ctx, "sane "+itoa(tty))
	return err
}

// Uptime implements Processes.
func (c *control) Uptime(ctx context.Context) (time.Duration, error) {
	out, err := c.do(ctx, "uptime")
	seconds, _ := strconv.ParseFloat(strings.TrimSpace(out), 64)
	return time.Duration(seconds * float64(time.Second)), err
}

// Signal implements Processes.
func (c *control) Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error) {
	var names []string
	for _, sig := range signals {
		if sig == "" || strings.Trim(string(sig), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			return 0, fmt.Errorf("no signal: %q", sig)
		}
		names = append(names, string(sig))
	}
	if len(names) == 0 {
		return 0, nil
	}
	out, err := c.do(ctx, "send "+strings.Join(names, ",")+words(pids))
	return strings.Count(out, "sent\n"), err
}

// Settle implements Processes. The control shell has no means to tell what is on its way. Only the rule that several looks have to agree covers that
// here.
func (c *control) Settle(context.Context, Process) error { return nil }

// words returns the ids as words behind a function's name. Ids below 1 are nobody's.
func words(pids []int) string {
	var s strings.Builder
	for _, pid := range pids {
		if pid > 0 {
			s.WriteString(" " + itoa(pid))
		}
	}
	return s.String()
}

// parseProcesses reads the lines of tree and alive.
func parseProcesses(out string) []proc.Process {
	var ps []proc.Process
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		switch kind, _, _ := strings.Cut(line, " "); {
		case kind == "P":
			if p, ok := parseProcess(strings.SplitN(line, " ", 11)); ok {
				ps = append(ps, p)
			}
		case kind == "T" && len(ps) > 0:
			if t, ok := parseThread(strings.Fields(line)); ok {
				p := &ps[len(ps)-1]
				p.Threads = append(p.Threads, t)
			}
		}
	}
	return ps
}

// parseProcess reads "P pid state ppid pgrp session tty tpgid starttime startcode name"; the name is the last, and may hold blanks.
func parseProcess(f []string) (p proc.Process, ok bool) {
	if len(f) < 11 {
		return p, false
	}
	p = proc.Process{
		PID: atoi(f[1]), State: f[2], Parent: atoi(f[3]), Group: atoi(f[4]), Session: atoi(f[5]),
		TTY: atoi(f[6]), Foreground: atoi(f[7]), Start: atoi64(f[8]), Image: f[9], Name: f[10],
	}
	if len(p.Image) == 1 { // "-": not told; "0": a zombie; "1": another user's process
		p.Image = ""
	}
	return p, true
}

// parseThread reads "T tid timeslices tty|-|? wchan|- syscall…".
func parseThread(f []string) (t proc.Thread, ok bool) {
	if len(f) < 5 {
		return t, false
	}
	t = proc.Thread{ID: atoi(f[1]), Turns: atoi64(f[2]), Reads: f[3] == "tty", Hidden: f[3] == "?", Wchan: f[4]}
	if t.Wchan == "0" || t.Wchan == "-" {
		t.Wchan = ""
	}
	call := new(proc.Call)
	if words := f[5:]; len(words) > len(call.Args) && atoi(words[0]) >= 0 { // -1: blocked, but in no system call
		call.Number = atoi(words[0])
		for i := range call.Args {
			call.Args[i], _ = strconv.ParseUint(words[1+i], 0, 64)
		}
		t.Call = call
	}
	return t, true
}

// atoi reads a number that the kernel has written; 0 for anything else.
func atoi(word string) int { return int(atoi64(word)) }

func atoi64(word string) int64 {
	n, _ := strconv.ParseInt(word, 10, 64)
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }
