package control

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// oneShell is why make test runs each row of a table in one control shell.
const oneShell = "each row starts programs, and the script is the same in all shells: each row " +
	"runs in one of them every day"

// sessionNames are the names of sessionShells.
var sessionNames = []string{"bash", "dash", "ash"}

// A shell that waits for a command reads its pipe. A shell that executes a command does not.
func TestLookIdle(t *testing.T) {
	for i, sh := range controlShells(t) {
		for name, args := range sessionShells {
			t.Run(sh[0]+"/"+name, func(t *testing.T) {
				if name != sessionNames[i%len(sessionNames)] {
					testenv.NeedsAll(t, oneShell)
				}
				c := startControl(t, 0, sh...)
				p, q := startPipedShell(t, name), startPipedShell(t, name)
				require.NotEqual(t, p.pipe, q.pipe)
				for _, p := range []*pipedShell{p, q, p} {
					l := awaitLook(t, c, p.pid, func(l *proc.Look) bool {
						return l.Reads == p.pipe
					})
					require.Equal(t, p.pid, l.Foreground)
					require.Equal(t, args, l.Args)
					require.NotEmpty(t, l.Image)
					require.Equal(t, proc.Shell{TTY: l.TTY, Reads: l.Reads, Image: l.Image},
						must[proc.Shell](t)(c.Shell(t.Context(), p.pid)))
					require.Positive(t, l.Turns)
					require.GreaterOrEqual(t, l.Total, l.Turns)
					require.Empty(t, l.Waits)
					require.False(t, l.Hidden || l.Runs || l.Gone)
					require.Equal(t, p.tty, fmt.Sprintf("/dev/pts/%d",
						l.TTY&0xff|l.TTY>>12&0xfff00))
				}
				for i, command := range []string{"sleep 1000", "mkfifo f; exec 9<>f; cat <&9",
					"x=$(sleep 1000)", "while :; do :; done"} {
					// Do not interrupt the loop, which is last: at a ^C busybox ash jumps out of
					// malloc, and then, rarely, waits for malloc's lock for ever.
					if i > 0 {
						interrupt(t, c, p)
					}
					p.run(t, command)
					awaitLook(t, c, p.pid, func(l *proc.Look) bool { return l.Reads != p.pipe })
					time.Sleep(20 * time.Millisecond)
					for range 5 {
						l := must[proc.Look](t)(c.Look(t.Context(), p.pid))
						require.NotEqual(t, p.pipe, l.Reads, command)
						require.Empty(t, l.Waits, command)
					}
					l := awaitLook(t, c, p.pid, func(l *proc.Look) bool {
						return l.Runs == strings.HasPrefix(command, "while")
					})
					require.Equal(t, args, l.Args)
				}
			})
		}
	}
}

// waiters are commands that wait for their terminal.
var waiters = []struct {
	needs, command string
	name           string // of the program that waits; "": the shell
	alone          bool
	modes          proc.Modes
}{
	{"cat", "cat", "cat", true, proc.Modes{Known: true}},
	{"busybox", "busybox cat", "busybox", true, proc.Modes{Known: true}},
	{"cat", "cat /dev/tty | cat", "cat", true, proc.Modes{Known: true}},
	{"head", "head -n 1", "head", true, proc.Modes{Known: true}},
	{"cat", "read x", "", true, proc.Modes{Known: true}},
	{"busybox", "busybox ash -c 'read x'", "busybox", true, proc.Modes{Known: true}},
	{"stty", "stty -echo; head -n 1", "head", true, proc.Modes{Known: true, NoEcho: true}},
	{"stty", "stty raw -echo; dd", "dd", true, proc.Modes{Known: true, Raw: true, NoEcho: true}},
	{"stty", "stty -icanon min 0 time 200; dd", "dd", false, proc.Modes{Known: true, Raw: true}},
	{"vim", "vim x", "vim", false, proc.Modes{Known: true, Raw: true, NoEcho: true}},
	{"busybox", "busybox vi x", "busybox", true, proc.Modes{Known: true, Raw: true, NoEcho: true}},
	{"less", "less /etc/passwd", "less", true, proc.Modes{Known: true, Raw: true, NoEcho: true}},
	{"python3", "python3 -c 'import readline; input()'", "python3", true,
		proc.Modes{Known: true, Raw: true, NoEcho: true}},
	{"python3", "python3 -c 'input()'", "python3", true, proc.Modes{Known: true}},
	{"python3", `python3 -c 'import threading; threading.Thread(target=input).start()
while True: pass'`, "python3", false, proc.Modes{Known: true}},
	{"python3", "python3 -c 'import select, tty; tty.setraw(0); select.select([0], [], [])'",
		"python3", true, proc.Modes{Known: true, Raw: true, NoEcho: true}},
	{"python3", "python3 -c 'import select, tty; tty.setraw(0); select.select([0], [], [], 1000)'",
		"python3", false, proc.Modes{Known: true, Raw: true, NoEcho: true}},
	{"python3", "python3 -c 'import os, select, tty; tty.setraw(0); select.select([0, " +
		"os.pipe()[0]], [], [])'", "python3", false,
		proc.Modes{Known: true, Raw: true, NoEcho: true}},
	{"script", "script -qc cat /dev/null", "cat", true, proc.Modes{Known: true}},
	{"script", "script -qc 'script -qc cat /dev/null' /dev/null", "cat", true,
		proc.Modes{Known: true}},
	{"script", "exec script -qc cat /dev/null", "cat", true, proc.Modes{Known: true}},
	{"setsid", "exec 9<&0; (setsid cat <&9 & wait)", "cat", true, proc.Modes{Known: true}},
}

func TestLookWaits(t *testing.T) {
	shells := controlShells(t)
	for i, sh := range shells {
		c := startControl(t, 0, sh...)
		for j, w := range waiters {
			shell := sessionNames[(i+j)%len(sessionNames)]
			t.Run(sh[0]+"/"+shell+"/"+w.command, func(t *testing.T) {
				if j%len(shells) != i {
					testenv.NeedsAll(t, oneShell)
				}
				if _, err := exec.LookPath(w.needs); err != nil {
					t.Skip("this machine has no " + w.needs)
				}
				p := startPipedShell(t, shell)
				p.run(t, w.command)
				l := awaitLook(t, c, p.pid, func(l *proc.Look) bool {
					return len(l.Waits) == 1 && l.Waits[0].Alone == w.alone &&
						l.Waits[0].Modes == w.modes && (w.name == "") == (l.Waits[0].PID == p.pid)
				})
				if w.name != "" {
					require.Contains(t, l.Waits[0].Name, w.name)
				}
				require.Positive(t, l.Waits[0].Turns)
				require.NotZero(t, l.Waits[0].TID)
				require.True(t, l.Modes.Known)
				require.False(t, l.Hidden)
				require.Empty(t, l.Reads)
			})
		}
	}
}

// Each of these commands reads its terminal. The script tells what else goes on, or says that
// something may.
func TestLookBeside(t *testing.T) {
	const pump = "import signal, sys, threading, time\n" +
		"def thread(f, *a): threading.Thread(target=f, args=a, daemon=True).start()\n"
	python := func(script string) string { return "python3 -c '" + pump + script + "'" }
	shells := controlShells(t)
	for i, sh := range shells {
		c := startControl(t, 0, sh...)
		for j, w := range []struct {
			command          string
			alone, othersRun bool
		}{
			{python("thread(sys.stdin.read); time.sleep(1000)"), false, false},
			{python("thread(sys.stdin.read); threading.Event().wait(1000)"), false, false},
			{python("thread(sys.stdin.read); signal.pause()"), false, false},
			{python("thread(sys.stdin.read); threading.Event().wait()"), true, false},
			{python("thread(threading.Event().wait, 1000); input()"), true, false},
			{"cat | cat", true, false},
			{"cat | sh -c 'sleep 1000; :'", true, true},
			{"bash -c 'sleep 1000 & read x; :'", true, true},
			{"sh -c '(read x); :'", true, false},
			{"timeout --foreground 1000 cat", false, false},
		} {
			t.Run(sh[0]+"/"+w.command, func(t *testing.T) {
				if j%len(shells) != i {
					testenv.NeedsAll(t, oneShell)
				}
				program, _, _ := strings.Cut(w.command, " ")
				if _, err := exec.LookPath(program); err != nil {
					t.Skip("this machine has no " + program)
				}
				p := startPipedShell(t, sessionNames[i%len(sessionNames)])
				p.run(t, w.command)
				in := 0
				awaitLook(t, c, p.pid, func(l *proc.Look) bool {
					if in++; len(l.Waits) != 1 || l.Waits[0].Alone != w.alone ||
						l.Waits[0].OthersRun != w.othersRun {
						in = 0
					}
					return in >= 3
				})
			})
		}
	}
}

func TestLookNeverWaits(t *testing.T) {
	c := startControl(t, 0)
	for _, w := range []struct{ needs, command string }{
		{"sleep", "sleep 1000 | cat"},
		{"sleep", "cat & sleep 1000"}, // the cat is stopped
		{"script", "script -qc 'sleep 1000' /dev/null"},
		{"python3", "python3 -c 'import select, os; select.select([os.pipe()[0]], [], [])'"},
	} {
		t.Run(w.command, func(t *testing.T) {
			if _, err := exec.LookPath(w.needs); err != nil {
				t.Skip("this machine has no " + w.needs)
			}
			p := startPipedShell(t, "bash")
			p.run(t, w.command)
			program, _, _ := strings.Cut(w.command, " ")
			awaitTree(t, p.pid, hasNames("bash", program))
			time.Sleep(100 * time.Millisecond)
			neverWaits(t, c, p.pid)
		})
	}
}

// TestLookHidden checks that a Look says so if what a process waits for is hidden, because it
// belongs to another user.
func TestLookHidden(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root becomes another user: run it as root")
	}
	for _, sh := range controlShells(t) {
		c := startControl(t, nobody, sh...)
		p := startPipedShell(t, "bash")
		l := awaitLook(t, c, p.pid, func(l *proc.Look) bool { return l.Hidden && !l.Runs })
		require.Empty(t, l.Reads)
		require.Empty(t, l.Waits)
		require.Empty(t, l.Image)
		require.Equal(t, sessionShells["bash"], l.Args)
		p.run(t, "cat")
		awaitLook(t, c, p.pid, func(l *proc.Look) bool {
			return l.Hidden && !l.Runs && l.Foreground != p.pid
		})
	}
	c := startControl(t, nobody)
	p := startPipedShellAs(t, nobody, "dash")
	awaitLook(t, c, p.pid, func(l *proc.Look) bool { return l.Reads == p.pipe && !l.Hidden })
	p.run(t, "stty -echo; cat")
	awaitLook(t, c, p.pid, func(l *proc.Look) bool {
		return len(l.Waits) == 1 && l.Waits[0].Name == "cat" && l.Waits[0].Modes.NoEcho
	})

	c = startControl(t, 0)
	p = startPipedShell(t, "bash")
	p.run(t, "su nobody -s /bin/sh -c cat")
	awaitLook(t, c, p.pid, func(l *proc.Look) bool {
		return len(l.Waits) == 1 && l.Waits[0].Name == "cat" && l.Waits[0].Alone
	})
}

func TestLookGone(t *testing.T) {
	c := startControl(t, 0)
	p := startPipedShell(t, "bash")
	awaitLook(t, c, p.pid, func(l *proc.Look) bool { return l.Reads == p.pipe })
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
	awaitLook(t, c, p.pid, func(l *proc.Look) bool { return l.Gone })
	require.Equal(t, proc.Look{Gone: true}, must[proc.Look](t)(c.Look(t.Context(), 4194303)))
	require.Empty(t, c.memos)
}

// The image and the arguments change with exec.
func TestLookExec(t *testing.T) {
	c := startControl(t, 0)
	p := startPipedShell(t, "bash")
	before := awaitLook(t, c, p.pid, func(l *proc.Look) bool { return l.Reads == p.pipe })
	p.run(t, "exec dash -i -c 'read x' \"$(printf 'a\\nb')\" '' c")
	after := awaitLook(t, c, p.pid, func(l *proc.Look) bool { return len(l.Waits) == 1 })
	require.NotEqual(t, before.Image, after.Image)
	require.Equal(t, []string{"dash", "-i", "-c", "read x", "a\nb", "", "c"}, after.Args)
}

func TestDiscard(t *testing.T) {
	for _, sh := range controlShells(t) {
		t.Run(sh[0], func(t *testing.T) {
			c := startControl(t, 0, sh...)
			p := startPipedShell(t, "bash")
			awaitLook(t, c, p.pid, func(l *proc.Look) bool { return l.Reads == p.pipe })
			tty, err := os.OpenFile(p.tty, os.O_RDWR|unix.O_NOCTTY, 0)
			require.NoError(t, err)
			defer tty.Close()
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			require.NoError(t, err)
			require.Zero(t, must[int](t)(c.Discard(t.Context(), p.pid)))
			for _, text := range []string{"one\ntwo\nthree", "x", "\n",
				strings.Repeat("0123456789\n", 500)} {
				_, err := io.WriteString(p.keys, text)
				require.NoError(t, err)
				require.Equal(t, len(text), must[int](t)(c.Discard(t.Context(), p.pid)))
				require.Zero(t, must[int](t)(c.Discard(t.Context(), p.pid)))
			}
			after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			require.NoError(t, err)
			require.Equal(t, before, after)
			require.Zero(t, must[int](t)(c.Discard(t.Context(), 4194303)))
		})
	}
}

// parseLook parses answers that this machine would not give: system calls are hidden (Yama), turns
// are not counted, there is no /proc, a relay has just forked.
func TestParseLook(t *testing.T) {
	const (
		shell = "P 10 S 1 10 10 34816 %d 500 9999 bash\n"
		raw   = "U 100.5\nM 34816\nspeed 38400 baud;\nmin = 1; time = 0;\nisig -icanon -echo\n"
	)
	look := func(answer string, foreground int, m *memo) proc.Look {
		v, err := parseLook(strings.ReplaceAll(answer, "%d", itoa(foreground)), m)
		require.NoError(t, err)
		return v.look(10)
	}
	m := memo{args: []string{"old"}}
	l := look(shell+"T 10 7 -\nR pipe:[1]\nA\nbash\x00\n-i\n", 10, &m)
	require.Equal(t, proc.Look{Turns: 7, Total: 7, Foreground: 10, Image: "9999", TTY: 34816}, l)
	require.Equal(t, memo{"500 9999 bash", []string{"bash\n", "-i"}, 7, "pipe:[1]"}, m)
	look(shell+"T 10 7 -\nR\n", 10, &m)
	require.Equal(t, memo{"500 9999 bash", []string{"bash\n", "-i"}, 7, "pipe:[1]"}, m)

	l = look(shell+"T 10 0 woken\n"+strings.ReplaceAll(raw, "-", ""), 10, &m)
	require.Equal(t, []proc.Wait{{PID: 10, TID: 10, Name: "bash", Modes: proc.Modes{Known: true},
		Alone: true}}, l.Waits)
	require.Empty(t, m.reads)

	child := "P 11 S 10 11 10 34816 11 600 8888 vi\nT 11 5 hpoll\n"
	l = look(shell+"T 10 2 -\n"+child+raw, 11, &m)
	require.Equal(t, []proc.Wait{{PID: 11, TID: 11, Name: "vi", Turns: 5,
		Modes: proc.Modes{Known: true, Raw: true, NoEcho: true}}}, l.Waits)
	fork := "P 12 R 11 12 12 0 -1 %s 8888 vi\nT 12 1 run\n"
	require.Empty(t, look(shell+"T 10 2 -\n"+child+strings.Replace(fork, "%s", "10000", 1)+raw, 11,
		&m).Waits)
	require.Len(t, look(shell+"T 10 2 -\n"+child+strings.Replace(fork, "%s", "9000", 1)+raw, 11,
		&m).Waits, 1)

	l = look(shell+"T 10 2 -\nP 11 S 10 11 10 34816 11 600 1 sudo\nT 11 5 ?\nU 1.0\nM 34816\n", 11,
		&m)
	require.True(t, l.Hidden)
	require.False(t, l.Modes.Known)

	for _, answer := range []string{"", "P\n", "P 1\nT 3\n", "T 1 2 -\nB 5\n", "A\n", "R\nU\nM\n"} {
		require.Zero(t, look(answer, 0, new(memo)), "%q", answer)
	}
	require.True(t, look("G\n", 0, &m).Gone)
}
