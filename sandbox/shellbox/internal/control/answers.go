package control

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/shellquote"
)

// This file and look.go parse what the functions of control.sh print. The format is described
// there.

// Tree is hostapi.Processes.Tree.
func (c *Processes) Tree(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return c.processes(ctx, "tree"+idWords(pids))
}

// Alive is hostapi.Processes.Alive.
func (c *Processes) Alive(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return c.processes(ctx, "alive"+idWords(pids))
}

func (c *Processes) processes(ctx context.Context, call string) ([]proc.Process, error) {
	out, err := c.query(ctx, call)
	if err != nil {
		return nil, err
	}
	return parseProcesses(out)
}

// Marked is hostapi.Processes.Marked.
func (c *Processes) Marked(ctx context.Context, word string) ([]int, error) {
	out, err := c.query(ctx, "marked "+shellquote.Quote(word))
	if err != nil {
		return nil, err
	}
	return parseIDs(out)
}

func parseIDs(out string) (pids []int, err error) {
	list := bounded.List{What: "the list of marked processes", Max: listMax}
	for id := range strings.FieldsSeq(out) {
		if err := list.Add(0); err != nil {
			return nil, err
		}
		pids = append(pids, atoi(id))
	}
	return pids, nil
}

// ResetModes is hostapi.Processes.ResetModes.
func (c *Processes) ResetModes(ctx context.Context, tty int) error {
	_, err := c.query(ctx, "sane "+itoa(tty))
	return err
}

// Discard is hostapi.Processes.Discard.
func (c *Processes) Discard(ctx context.Context, pid int) (int, error) {
	ps, err := c.Alive(ctx, pid)
	if err != nil || len(ps) == 0 {
		return 0, err
	}
	out, err := c.query(ctx, "discard "+itoa(ps[0].TTY)+" "+itoa(ps[0].Parent))
	return atoi(strings.TrimSpace(out)), err
}

// Shell is hostapi.ShellTeller.Shell.
func (c *Processes) Shell(ctx context.Context, pid int) (proc.Shell, error) {
	out, err := c.query(ctx, "shell"+idWords([]int{pid}))
	if err != nil {
		return proc.Shell{}, err
	}
	return parseShell(out), nil
}

func parseShell(out string) (shell proc.Shell) {
	if len(out) > memoMax {
		return shell
	}
	line, reads, _ := strings.Cut(out, "\nR ")
	if p, ok := parseProcess(strings.SplitN(line, " ", 11)); ok {
		shell = proc.Shell{TTY: p.TTY, Reads: strings.TrimSuffix(reads, "\n"), Image: p.Image}
	}
	if shell.TTY == 0 || shell.Reads == "" || shell.Image == "" {
		return proc.Shell{}
	}
	return shell
}

// Program is hostapi.Processes.Program.
func (c *Processes) Program(ctx context.Context, pid int) (dir string, env []string, err error) {
	if pid <= 0 {
		return "", nil, nil
	}
	out, err := c.query(ctx, "program "+itoa(pid))
	if err != nil {
		return "", nil, err
	}
	return parseProgram(out)
}

func parseProgram(out string) (dir string, env []string, err error) {
	dir, variables, _ := strings.Cut(out, "\n")
	all, err := splitSwapped(variables)
	for _, variable := range all {
		if variable != "" {
			env = append(env, variable)
		}
	}
	return strings.ReplaceAll(dir, "\x00", "\n"), env, err
}

// splitSwapped returns the strings of a list. Each string ended with NUL, and tr has exchanged NUL
// and "\n".
func splitSwapped(list string) (all []string, err error) {
	if list == "" {
		return nil, nil
	}
	counted := bounded.List{What: "the strings of a process", Max: listMax,
		Cost: bounded.StringCost}
	for text := range strings.SplitSeq(strings.TrimSuffix(list, "\n"), "\n") {
		if err := counted.Add(len(text)); err != nil {
			return nil, err
		}
		all = append(all, strings.ReplaceAll(text, "\x00", "\n"))
	}
	return all, nil
}

// Uptime is hostapi.Processes.Uptime.
func (c *Processes) Uptime(ctx context.Context) (time.Duration, error) {
	out, err := c.query(ctx, "uptime")
	return parseSeconds(out), err
}

func parseSeconds(word string) time.Duration {
	seconds, _ := strconv.ParseFloat(strings.TrimSpace(word), 64)
	return time.Duration(seconds * float64(time.Second))
}

// Signal is hostapi.Processes.Signal.
func (c *Processes) Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error) {
	var names []string
	for _, sig := range signals {
		if sig == "" || strings.Trim(string(sig), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			return 0, fmt.Errorf("unknown signal %q", sig)
		}
		names = append(names, string(sig))
	}
	if len(names) == 0 {
		return 0, nil
	}
	call := "send " + strings.Join(names, ",")
	for _, id := range pids {
		if id > 0 || id < -1 {
			call += " " + strconv.Itoa(id)
		}
	}
	out, err := c.query(ctx, call)
	return strings.Count(out, "sent\n"), err
}

// Interrupt is hostapi.Processes.Interrupt.
func (c *Processes) Interrupt(ctx context.Context, pid int) (bool, error) {
	out, err := c.query(ctx, "interrupt"+idWords([]int{pid}))
	return out != "", err
}

// idWords returns the ids as arguments of a shell function. It leaves out ids below 1, which no
// process has.
func idWords(pids []int) string {
	var s strings.Builder
	for _, pid := range pids {
		if pid > 0 {
			s.WriteString(" " + itoa(pid))
		}
	}
	return s.String()
}

// parseProcesses parses what tree and alive print.
func parseProcesses(out string) (ps []proc.Process, err error) {
	list := bounded.List{What: "the list of processes", Max: listMax}
	for line := range strings.Lines(out) {
		if p, ok := parseProcess(strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 11)); ok {
			if err := list.Add(len(line)); err != nil {
				return nil, err
			}
			ps = append(ps, p)
		}
	}
	return ps, nil
}

// parseProcess parses the words of "P pid state:blocked:sigcatch ppid pgrp session tty tpgid
// starttime startcode name". The name may contain blanks.
func parseProcess(f []string) (p proc.Process, ok bool) {
	if len(f) < 11 || f[0] != "P" {
		return p, false
	}
	state, signals, _ := strings.Cut(f[2], ":")
	blocked, caught, _ := strings.Cut(signals, ":")
	p = proc.Process{
		PID: atoi(f[1]), State: state, Blocked: uint32(atoi(blocked)), Caught: uint32(atoi(caught)),
		Parent: atoi(f[3]), Group: atoi(f[4]), Session: atoi(f[5]), TTY: atoi(f[6]),
		Foreground: atoi(f[7]),
		Start:      atoi64(f[8]), Image: f[9], Name: f[10],
	}
	if len(p.Image) == 1 { // "-": not asked for; "0": a zombie; "1": another user's process
		p.Image = ""
	}
	return p, true
}

// terminalModes are the modes of a terminal.
type terminalModes struct {
	proc.Modes
	timed bool // a read ends without input after some time (min 0)
}

// parseModes parses what stty -a prints. The punctuation depends on the system.
func parseModes(out string) terminalModes {
	var m terminalModes
	m.Known = out != ""
	var before [2]string
	for word := range strings.FieldsSeq(out) {
		switch strings.TrimSuffix(word, ";") {
		case "-icanon":
			m.Raw = true
		case "-echo":
			m.NoEcho = true
		case "0":
			m.timed = m.timed || before == [2]string{"min", "="}
		}
		before = [2]string{before[1], word}
	}
	m.timed = m.timed && m.Raw
	return m
}

// atoi parses a number. It returns 0 for any other text.
func atoi(word string) int { return int(atoi64(word)) }

func atoi64(word string) int64 {
	n, _ := strconv.ParseInt(word, 10, 64)
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }
