package control

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/sandbox"
)

func TestTree(t *testing.T) {
	sh := startControl(t, 0)
	ctx := t.Context()
	for _, c := range liveTrees {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.script, "python3") {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip("this machine has no python3")
				}
			}
			pid := startShell(t, c.script)
			var ours, theirs []proc.Process
			// Trees that change meanwhile cannot be compared.
			for again := true; again; {
				ours = awaitTree(t, pid, c.wanted)
				theirs = must[[]proc.Process](t)(sh.Tree(ctx, pid))
				again = !slices.Equal(sortedLines(ours), sortedLines(procfs.Tree(pid)))
			}
			require.Equal(t, sortedLines(ours), sortedLines(theirs))

			pids := pidsOf(ours)
			for _, tree := range [][]proc.Process{procfs.Tree(pids...),
				must[[]proc.Process](t)(sh.Tree(ctx, pids...))} {
				require.Equal(t, sortedLines(ours), sortedLines(tree), "each process is there once")
			}
			alive := procfs.Alive(pids...)
			for i := range alive {
				// the shell does not return them
				alive[i].Image, alive[i].Name, alive[i].Caught, alive[i].Blocked = "", "", 0, 0
			}
			require.Equal(t, sortedLines(alive),
				sortedLines(must[[]proc.Process](t)(sh.Alive(ctx, pids...))))
		})
	}
}

// Both return the same about another user's processes.
func TestTreeOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root becomes another user: run it as root")
	}
	const nobody = 65534
	sh := startControl(t, nobody)
	pid := startShell(t, "cat")
	awaitTree(t, pid, hasNames("cat"))
	answers := make(chan []proc.Process)
	go func() {
		// The thread is never unlocked, so it ends with the goroutine.
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody,
			nobody); errno != 0 {
			answers <- nil
			return
		}
		answers <- procfs.Tree(pid)
	}()
	ours := <-answers
	theirs := must[[]proc.Process](t)(sh.Tree(t.Context(), pid))
	require.Equal(t, sortedLines(ours), sortedLines(theirs))
	require.Len(t, ours, 2)
	require.Empty(t, ours[1].Image)
}

func TestNothingThere(t *testing.T) {
	ctx := t.Context()
	for _, answers := range []processes{startControl(t, 0), thisMachine{}} {
		require.Empty(t, must[[]proc.Process](t)(answers.Tree(ctx)))
		require.Empty(t, must[[]proc.Process](t)(answers.Tree(ctx, 4194303, 0, -1)))
		require.Empty(t, must[[]proc.Process](t)(answers.Alive(ctx)))
		require.Empty(t, must[[]proc.Process](t)(answers.Alive(ctx, 4194303, 0, -1)))
		require.Empty(t, must[[]int](t)(answers.Marked(ctx, "")))
		require.Empty(t, must[[]int](t)(answers.Marked(ctx, `NO_SUCH'MARK="$(x)`)))
		// no terminal, a serial line, a terminal that does not exist
		for _, tty := range []int{0, -1, 1088, 287319} {
			require.NoError(t, answers.ResetModes(ctx, tty))
		}
		require.Zero(t, must[int](t)(answers.Signal(ctx, nil, proc.SIGTERM)))
		require.Zero(t, must[int](t)(answers.Signal(ctx, []int{4194303, 0, -1, -4194303},
			proc.SIGTERM, "0")))
		require.Zero(t, must[int](t)(answers.Signal(ctx, []int{os.Getpid()})))
		for _, sig := range []proc.Signal{"", "TERM;", "-9", "term"} {
			sent, err := answers.Signal(ctx, []int{os.Getpid()}, sig)
			require.Error(t, err, "%q", sig)
			require.Zero(t, sent)
		}
	}
}

func TestMarked(t *testing.T) {
	sh := startControl(t, 0)
	mark := fmt.Sprintf("SHELLBOX_TEST=%d.%d.", os.Getpid(), time.Now().UnixNano())
	// One environment with the mark is large. No command line has the mark.
	pid := startShell(t,
		"sleep 1000 & (PADDING=$(printf %0100000d 0) exec sleep 1000) & sleep 1000", mark+"'x")
	awaitTree(t, pid, hasNames("sleep", "sleep", "sleep"))
	for _, word := range []string{mark, mark + "'"} {
		found := procfs.Marked(word)
		require.Len(t, found, 4)
		require.ElementsMatch(t, must[[]int](t)(sh.Marked(t.Context(), word)), found)
	}
	require.Empty(t, procfs.Marked(mark+"y"))
}

func TestModes(t *testing.T) {
	sh := startControl(t, 0)
	for _, prepare := range []string{"sane", "raw -echo", "-echo", "-icanon min 5 time 7", "-a",
		"cbreak -echo intr ^A erase ^H inlcr igncr olcuc ocrnl tostop noflsh -isig -icrnl -opost " +
			"xcase echoprt echonl -brkint eol ^X swtch ^Y -ixon"} {
		t.Run(prepare, func(t *testing.T) {
			var reset [2]unix.Termios
			for i, answers := range []processes{thisMachine{}, sh} {
				ptm, tty, err := pty.Open()
				require.NoError(t, err)
				defer ptm.Close()
				defer tty.Close()
				stty := exec.Command("stty", strings.Fields(prepare)...)
				stty.Stdin = tty
				out, err := stty.CombinedOutput()
				require.NoError(t, err, "%s", out)
				var st unix.Stat_t
				require.NoError(t, unix.Fstat(int(tty.Fd()), &st))
				major, minor := unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
				number := int(major<<8 | minor&0xff | minor&^0xff<<12)
				m := procfs.Modes(number)
				require.True(t, m.Known)
				require.Equal(t, m, parseModes(must[string](t)(
					sh.query(t.Context(), "modes "+itoa(number)))).Modes)
				require.NoError(t, answers.ResetModes(t.Context(), number))
				after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
				require.NoError(t, err)
				reset[i] = *after
				require.Equal(t, proc.Modes{Known: true}, procfs.Modes(number))
			}
			require.Equal(t, reset[1], reset[0])
		})
	}
}

// Discard also drops the input that the process at the terminal's master has not yet written. Here
// that process is busy.
func TestDiscardFed(t *testing.T) {
	sh := startControl(t, 0)
	feeder := exec.Command("python3", "-c", `
import os, pty, time
pid, terminal = pty.fork()
if pid == 0: os.execvp("sh", ["sh", "-c", "echo up; exec sleep 1000"])
os.read(terminal, 1) # it is on the terminal
print(pid, flush=True)
end = time.monotonic() + 0.5
while time.monotonic() < end: pass
os.write(terminal, b"late")
time.sleep(1000)`)
	out, err := feeder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, feeder.Start())
	defer feeder.Wait()
	defer func() { // the hangup may be ignored: the tests may run under nohup
		procfs.Signal(pidsOf(procfs.Tree(feeder.Process.Pid)), proc.SIGKILL)
	}()
	var pid int
	_, err = fmt.Fscan(out, &pid)
	require.NoError(t, err)
	require.Equal(t, len("late"), must[int](t)(sh.Discard(t.Context(), pid)))
	require.Zero(t, must[int](t)(sh.Discard(t.Context(), pid)))
}

func TestUptime(t *testing.T) {
	sh := startControl(t, 0)
	before := must[time.Duration](t)(procfs.Uptime())
	between := must[time.Duration](t)(sh.Uptime(t.Context()))
	after := must[time.Duration](t)(procfs.Uptime())
	if (between - after).Abs() > time.Minute {
		t.Skip("/proc/uptime is not this machine's")
	}
	require.LessOrEqual(t, before, between+10*time.Millisecond)
	require.LessOrEqual(t, between, after+10*time.Millisecond)
}

func TestSignal(t *testing.T) {
	got := make(chan os.Signal, 8)
	signal.Notify(got, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(got)
	self, ctx := os.Getpid(), t.Context()
	for _, answers := range []processes{startControl(t, 0), thisMachine{}} {
		require.Equal(t, 2, must[int](t)(answers.Signal(ctx, []int{self}, "USR1",
			proc.Signal(itoa(int(syscall.SIGUSR2))))))
		seen := map[os.Signal]bool{<-got: true, <-got: true}
		require.Equal(t, map[os.Signal]bool{syscall.SIGUSR1: true, syscall.SIGUSR2: true}, seen)
		require.Equal(t, 2, must[int](t)(answers.Signal(ctx, []int{self, 4194303, self}, "0")))
	}
}

func TestInterrupt(t *testing.T) {
	answers := map[string]processes{"procfs": thisMachine{}}
	for _, sh := range controlShells(t) {
		answers[strings.Join(sh, " ")] = startControl(t, 0, sh...)
	}
	for name, answers := range answers {
		t.Run(name, func(t *testing.T) {
			shell := startShell(t, "sleep 1000 | sleep 1000")
			awaitTree(t, shell, hasNames("sleep", "sleep"))
			require.True(t, must[bool](t)(answers.Interrupt(t.Context(), shell)))
			awaitTree(t, shell, func(ps []proc.Process) bool {
				return len(ps) == 1 && ps[0].PID == shell
			})
			require.False(t, must[bool](t)(answers.Interrupt(t.Context(), 4194303)))
		})
	}
}

func TestProgram(t *testing.T) {
	dir := t.TempDir() + "/a\nb -> c"
	require.NoError(t, os.Mkdir(dir, 0o700))
	env := []string{"A=1\n2\n", "B=", "C=\\n\t\x01é", "D= \n=end=\n"}
	cmd := exec.Command("sleep", "1000")
	cmd.Dir, cmd.Env = dir, slices.Clone(env)
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for _, sh := range controlShells(t) {
		c := startControl(t, 0, sh...)
		c.nonce = "=the end="
		gotDir, gotEnv, err := c.Program(t.Context(), cmd.Process.Pid)
		require.NoError(t, err)
		require.Equal(t, dir, gotDir, sh)
		require.Equal(t, env, gotEnv, sh)
		gotDir, gotEnv, err = c.Program(t.Context(), 4194303)
		require.NoError(t, err)
		require.Empty(t, gotDir)
		require.Nil(t, gotEnv)
	}
}

// The answer to a question whose ctx has ended is not taken for that of the next one. A shell that
// does not answer is replaced.
func TestControlGivesUp(t *testing.T) {
	c := startControl(t, 0)
	must[time.Duration](t)(c.Uptime(t.Context()))
	require.NoError(t, syscall.Kill(c.shell.(*plainShell).cmd.Process.Pid, syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := c.Uptime(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotZero(t, must[time.Duration](t)(c.Uptime(t.Context())))

	var askers sync.WaitGroup
	for i := range 4 {
		askers.Go(func() {
			pid := []int{1, os.Getpid(), os.Getppid(), 1}[i]
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(),
					time.Duration(rand.IntN(2000))*time.Microsecond)
				ps, err := c.Alive(ctx, pid)
				cancel()
				if err == nil && (len(ps) != 1 || ps[0].PID != pid) {
					t.Errorf("asked for %d: %+v", pid, ps)
				}
			}
		})
	}
	askers.Wait()
	c.Close()
	_, err = c.Uptime(t.Context())
	require.ErrorIs(t, err, sandbox.ErrClosed)
}
