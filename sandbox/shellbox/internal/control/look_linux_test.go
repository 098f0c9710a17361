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

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/internal/shellquote"
)

const nobody = 65534

// controlShells returns those shells of this machine that control.sh is for.
func controlShells(t testing.TB) (shells [][]string) {
	for _, sh := range [][]string{{"dash"}, {"bash"}, {"busybox", "ash"}, {"mksh"}} {
		if _, err := exec.LookPath(sh[0]); err == nil {
			shells = append(shells, sh)
		}
	}
	return shells
}

// A numbered is a Process of which only the id is known.
// An onPipe is an interactive shell that gets its commands on a pipe, on a terminal of its own.
type onPipe struct {
	pid      int
	commands *os.File
	keys     *os.File
	tty      string
	pipe     string
}

var sessionShells = map[string][]string{
	"bash": {"bash", "--norc", "--noprofile", "--noediting", "-i"},
	"dash": {"dash", "-i"},
	"ash":  {"busybox", "ash", "-o", "ignoreeof", "-i"},
}

func startOnPipe(t testing.TB, name string) *onPipe { return startAs(t, 0, name) }

// startAs starts the shell as the user of that id if it is not 0.
func startAs(t testing.TB, uid uint32, name string) *onPipe {
	t.Helper()
	args := sessionShells[name]
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skip("this machine has no " + args[0])
	}
	ptm, tty, err := pty.Open()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TERM=xterm", "PS1=", "HISTFILE=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	if uid != 0 {
		require.NoError(t, tty.Chown(int(uid), int(uid)))
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
		cmd.Dir = "/"
	}
	require.NoError(t, cmd.Start())
	pipe, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", r.Fd()))
	require.NoError(t, err)
	name = tty.Name()
	r.Close()
	tty.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(io.Discard, ptm)
	}()
	t.Cleanup(func() {
		procfs.Signal(pidsOf(procfs.Tree(cmd.Process.Pid)), proc.SIGKILL)
		w.Close()
		cmd.Wait()
		<-read
		ptm.Close()
	})
	return &onPipe{cmd.Process.Pid, w, ptm, name, pipe}
}

// run has the shell execute a command, as the engine does.
func (p *onPipe) run(t testing.TB, command string) {
	t.Helper()
	_, err := fmt.Fprintf(p.commands, "\\eval %s <%s\n", shellquote.Quote(command), p.tty)
	require.NoError(t, err)
}

// eventually looks until the look is as wanted, twice.
func eventually(t testing.TB, c *Processes, pid int, wanted func(*proc.Look) bool) proc.Look {
	t.Helper()
	var l proc.Look
	agreed := 0
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(5 * time.Millisecond) {
		l = must[proc.Look](t)(c.Look(t.Context(), pid))
		if agreed++; !wanted(&l) {
			agreed = 0
		}
		if agreed == 2 {
			return l
		}
	}
	t.Fatalf("not as wanted: %+v", l)
	return l
}

// never checks that no look finds that anybody waits.
func never(t testing.TB, c *Processes, pid int) {
	t.Helper()
	for range 20 {
		l := must[proc.Look](t)(c.Look(t.Context(), pid))
		require.Empty(t, l.Waits)
		require.Empty(t, l.Reads)
		time.Sleep(2 * time.Millisecond)
	}
}

// A shell that waits for a command reads its pipe, and no shell that executes one does.
func TestLookIdle(t *testing.T) {
	for _, sh := range controlShells(t) {
		for name, args := range sessionShells {
			t.Run(sh[0]+"/"+name, func(t *testing.T) {
				c := startControl(t, 0, sh...)
				p, q := startOnPipe(t, name), startOnPipe(t, name)
				require.NotEqual(t, p.pipe, q.pipe)
				for _, p := range []*onPipe{p, q, p} {
					l := eventually(t, c, p.pid, func(l *proc.Look) bool {
						return l.Reads == p.pipe
					})
					require.Equal(t, p.pid, l.Foreground)
					require.Equal(t, args, l.Args)
					require.NotEmpty(t, l.Image)
					require.Positive(t, l.Turns)
					require.GreaterOrEqual(t, l.Total, l.Turns)
					require.Empty(t, l.Waits)
					require.False(t, l.Hidden || l.Runs || l.Gone)
					require.Equal(t, p.tty, fmt.Sprintf("/dev/pts/%d",
						l.TTY&0xff|l.TTY>>12&0xfff00))
				}
				for i, command := range []string{"sleep 1000", "mkfifo f; exec 9<>f; cat <&9",
					"x=$(sleep 1000)", "while :; do :; done"} {
					// not behind the loop: busybox ash jumps out of malloc at a ^C, and rarely
					// waits for malloc's lock for ever
					if i > 0 {
						interrupt(t, c, p)
					}
					p.run(t, command)
					eventually(t, c, p.pid, func(l *proc.Look) bool { return l.Reads != p.pipe })
					time.Sleep(20 * time.Millisecond)
					for range 5 {
						l := must[proc.Look](t)(c.Look(t.Context(), p.pid))
						require.NotEqual(t, p.pipe, l.Reads, command)
						require.Empty(t, l.Waits, command)
					}
					l := eventually(t, c, p.pid, func(l *proc.Look) bool {
						return l.Runs == strings.HasPrefix(command, "while")
					})
					require.Equal(t, args, l.Args)
				}
			})
		}
	}
}

// interrupt interrupts the terminal's foreground until the shell is back.
func interrupt(t testing.TB, c *Processes, p *onPipe) {
	t.Helper()
	for range 200 {
		l := must[proc.Look](t)(c.Look(t.Context(), p.pid))
		if l.Reads == p.pipe {
			return
		}
		must[bool](t)(c.Interrupt(t.Context(), p.pid))
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the shell does not come back")
}

// Programs that wait for their terminal.
var waiters = []struct {
	needs, command string
	name           string // "": the shell
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
	for i, sh := range controlShells(t) {
		c := startControl(t, 0, sh...)
		names := []string{"bash", "dash", "ash"}
		for j, w := range waiters {
			shell := names[(i+j)%len(names)]
			t.Run(sh[0]+"/"+shell+"/"+w.command, func(t *testing.T) {
				if _, err := exec.LookPath(w.needs); err != nil {
					t.Skip("this machine has no " + w.needs)
				}
				p := startOnPipe(t, shell)
				p.run(t, w.command)
				l := eventually(t, c, p.pid, func(l *proc.Look) bool {
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

func TestLookNobodyWaits(t *testing.T) {
	c := startControl(t, 0)
	for _, w := range []struct{ needs, command string }{
		{"sleep", "sleep 1000 | cat"},
		{"sleep", "cat & sleep 1000"}, // stopped
		{"script", "script -qc 'sleep 1000' /dev/null"},
		{"python3", "python3 -c 'import select, os; select.select([os.pipe()[0]], [], [])'"},
	} {
		t.Run(w.command, func(t *testing.T) {
			if _, err := exec.LookPath(w.needs); err != nil {
				t.Skip("this machine has no " + w.needs)
			}
			p := startOnPipe(t, "bash")
			p.run(t, w.command)
			program, _, _ := strings.Cut(w.command, " ")
			settled(t, p.pid, has("bash", program))
			time.Sleep(100 * time.Millisecond)
			never(t, c, p.pid)
		})
	}
}

// Another user's processes hide what they wait for.
func TestLookHidden(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root becomes another user: run it as root")
	}
	for _, sh := range controlShells(t) {
		c := startControl(t, nobody, sh...)
		p := startOnPipe(t, "bash")
		l := eventually(t, c, p.pid, func(l *proc.Look) bool { return l.Hidden && !l.Runs })
		require.Empty(t, l.Reads)
		require.Empty(t, l.Waits)
		require.Empty(t, l.Image)
		require.Equal(t, sessionShells["bash"], l.Args)
		p.run(t, "cat")
		eventually(t, c, p.pid, func(l *proc.Look) bool {
			return l.Hidden && !l.Runs && l.Foreground != p.pid
		})
	}
	c := startControl(t, nobody)
	p := startAs(t, nobody, "dash")
	eventually(t, c, p.pid, func(l *proc.Look) bool { return l.Reads == p.pipe && !l.Hidden })
	p.run(t, "stty -echo; cat")
	eventually(t, c, p.pid, func(l *proc.Look) bool {
		return len(l.Waits) == 1 && l.Waits[0].Name == "cat" && l.Waits[0].Modes.NoEcho
	})

	c = startControl(t, 0)
	p = startOnPipe(t, "bash")
	p.run(t, "su nobody -s /bin/sh -c cat")
	eventually(t, c, p.pid, func(l *proc.Look) bool {
		return len(l.Waits) == 1 && l.Waits[0].Name == "cat" && l.Waits[0].Alone
	})
}

func TestLookGone(t *testing.T) {
	c := startControl(t, 0)
	p := startOnPipe(t, "bash")
	eventually(t, c, p.pid, func(l *proc.Look) bool { return l.Reads == p.pipe })
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
	eventually(t, c, p.pid, func(l *proc.Look) bool { return l.Gone })
	require.Equal(t, proc.Look{Gone: true}, must[proc.Look](t)(c.Look(t.Context(), 4194303)))
	require.Empty(t, c.memos)
}

// The image and the arguments change with exec.
func TestLookExec(t *testing.T) {
	c := startControl(t, 0)
	p := startOnPipe(t, "bash")
	before := eventually(t, c, p.pid, func(l *proc.Look) bool { return l.Reads == p.pipe })
	p.run(t, "exec dash -i -c 'read x' \"$(printf 'a\\nb')\" '' c")
	after := eventually(t, c, p.pid, func(l *proc.Look) bool { return len(l.Waits) == 1 })
	require.NotEqual(t, before.Image, after.Image)
	require.Equal(t, []string{"dash", "-i", "-c", "read x", "a\nb", "", "c"}, after.Args)
}

func TestDiscard(t *testing.T) {
	for _, sh := range controlShells(t) {
		t.Run(sh[0], func(t *testing.T) {
			c := startControl(t, 0, sh...)
			p := startOnPipe(t, "bash")
			eventually(t, c, p.pid, func(l *proc.Look) bool { return l.Reads == p.pipe })
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

// Answers of machines that this one is not: system calls are hidden (Yama), nothing is counted,
// there is no /proc, a relay has just forked.
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
