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

// The control shell and package inspect answer the same questions: here they are compared on live
// processes.

// limit bounds the wait for what is to happen at once.
const limit = 20 * time.Second

// local answers as a Host on this machine does.
type local struct{}

func (local) Tree(_ context.Context, pids ...int) ([]proc.Process, error) {
	return procfs.Tree(pids...), nil
}
func (local) Alive(_ context.Context, pids ...int) ([]proc.Process, error) {
	return procfs.Alive(pids...), nil
}
func (local) Marked(_ context.Context, word string) ([]int, error) {
	return procfs.Marked(word), nil
}
func (local) ResetModes(_ context.Context, tty int) error {
	procfs.ResetModes(tty)
	return nil
}
func (local) Uptime(context.Context) (time.Duration, error) { return procfs.Uptime() }
func (local) Signal(_ context.Context, pids []int, signals ...proc.Signal) (int, error) {
	return procfs.Signal(pids, signals...)
}
func (local) Interrupt(_ context.Context, pid int) (bool, error) {
	return procfs.Interrupt(pid), nil
}
func (local) Look(_ context.Context, pid int) (proc.Look, error) { return procfs.Look(pid), nil }
func (local) Discard(_ context.Context, pid int) (int, error) {
	return procfs.Discard(procfs.Look(pid).TTY), nil
}
func (local) Program(_ context.Context, pid int) (string, []string, error) {
	dir, env := procfs.Program(pid)
	return dir, env, nil
}

// answers are what both have.
type answers interface {
	Tree(ctx context.Context, pids ...int) ([]proc.Process, error)
	Alive(ctx context.Context, pids ...int) ([]proc.Process, error)
	Marked(ctx context.Context, word string) ([]int, error)
	ResetModes(ctx context.Context, tty int) error
	Uptime(context.Context) (time.Duration, error)
	Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error)
	Interrupt(ctx context.Context, pid int) (bool, error)
	Look(ctx context.Context, pid int) (proc.Look, error)
	Discard(ctx context.Context, pid int) (int, error)
	Program(ctx context.Context, pid int) (string, []string, error)
}

// settled returns the tree of a process when it is as wanted, nothing in it runs, and it is the
// same twice.
func settled(t testing.TB, pid int, wanted func([]proc.Process) bool) []proc.Process {
	t.Helper()
	var last []proc.Process
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(10 * time.Millisecond) {
		ps := procfs.Tree(pid)
		if fmt.Sprint(plain(ps)) == fmt.Sprint(plain(last)) &&
			!slices.ContainsFunc(ps, func(p proc.Process) bool {
				return p.State == "R" || p.State == "D"
			}) && wanted(ps) {
			return ps
		}
		last = ps
	}
	t.Fatalf("not as wanted: %+v", plain(last))
	return nil
}

// plain brings processes in one order, which is not that of either answer.
func plain(ps []proc.Process) []string {
	var all []string
	for _, p := range ps {
		all = append(all, fmt.Sprintf("%07d %+v", p.PID, p))
	}
	slices.Sort(all)
	return all
}

// has reports whether processes of these names are there.
func has(names ...string) func([]proc.Process) bool {
	return func(ps []proc.Process) bool {
		var there []string
		for _, p := range ps {
			there = append(there, p.Name)
		}
		for _, name := range names {
			i := slices.Index(there, name)
			if i < 0 {
				return false
			}
			there = slices.Delete(there, i, i+1)
		}
		return true
	}
}

// Trees with all that the engine asks about: sleepers, threads, a zombie, pipelines, odd names.
var liveTrees = []struct {
	name, script string
	wanted       func([]proc.Process) bool
}{
	{"Prompt", ":", has("bash")},
	// the child of the first sleep ends when that is no shell any more, which would reap it
	{"Zombie",
		`sh -c 'sh -c "until grep -q sleep /proc/\$PPID/comm; do :; done" & exec sleep 1000' & sleep 1000 | sleep 1000 & cat`,
		func(ps []proc.Process) bool {
			zombie := slices.ContainsFunc(ps, func(p proc.Process) bool {
				return p.State == "Z" && p.Name == "sh" && p.Image == ""
			})
			return zombie && has("bash", "cat", "sleep", "sleep", "sleep")(ps)
		}},
	{"Pipeline", "sleep 1000 | (sleep 1000; true) | cat", has("cat", "sleep", "sleep")},
	{"Threads", `python3 -c '
import threading, time, sys
for _ in range(12): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
sys.stdin.readline()'`, func(ps []proc.Process) bool {
		return has("python3")(ps) && slices.ContainsFunc(ps, func(p proc.Process) bool {
			threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
			return len(threads) == 13
		})
	}},
	{"MainThreadEnded", `python3 -c '
import threading, time, ctypes
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)'`, func(ps []proc.Process) bool {
		return slices.ContainsFunc(ps, func(p proc.Process) bool {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
			return p.Name == "python3" && p.State == "S" && strings.Contains(string(stat), ") Z ")
		})
	}},
	{"Background", "python3 -c 'import threading, time\nfor _ in range(3): " +
		"threading.Thread(target=time.sleep, args=(1000,)).start()' & sleep 1000",
		has("python3", "sleep")},
	{"Names", `s=$(command -v sleep); n() { ln -s "$s" "$1"; ./"$1" 1000 & }; n 'a) S 1 1 ('; n $'x\ny'; n '\n'; n ' b  c '; n ')'; cat`,
		has("cat", "a) S 1 1 (", "x", `\n`, " b  c ", ")")},
}

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
			// what changes meanwhile cannot be compared
			for again := true; again; again = !slices.Equal(plain(ours), plain(procfs.Tree(pid))) {
				ours = settled(t, pid, c.wanted)
				theirs = must[[]proc.Process](t)(sh.Tree(ctx, pid))
			}
			require.Equal(t, plain(ours), plain(theirs))

			pids := pidsOf(ours)
			require.Equal(t, plain(ours), plain(procfs.Tree(pids...)), "each process is there once")
			require.Equal(t, plain(ours), plain(must[[]proc.Process](t)(sh.Tree(ctx, pids...))),
				"each process is there once")
			alive := procfs.Alive(pids...)
			for i := range alive {
				alive[i].Image, alive[i].Name = "", "" // the shell leaves them out
			}
			require.Equal(t, alive, must[[]proc.Process](t)(sh.Alive(ctx, pids...)))
		})
	}
}

// Another user's processes show to both what they show to that user.
func TestTreeOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root becomes another user: run it as root")
	}
	const nobody = 65534
	sh := startControl(t, nobody)
	pid := startShell(t, "cat")
	settled(t, pid, has("cat"))
	answers := make(chan []proc.Process)
	go func() {
		// for good: the thread ends with the goroutine, and with it the identity
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody,
			nobody); errno != 0 {
			answers <- nil
			return
		}
		answers <- procfs.Tree(pid)
	}()
	ours := <-answers
	require.Equal(t, plain(ours), plain(must[[]proc.Process](t)(sh.Tree(t.Context(), pid))))
	require.Len(t, ours, 2)
	require.Empty(t, ours[1].Image)
}

func TestNothingThere(t *testing.T) {
	ctx := t.Context()
	for _, answers := range []answers{startControl(t, 0), local{}} {
		require.Empty(t, must[[]proc.Process](t)(answers.Tree(ctx)))
		require.Empty(t, must[[]proc.Process](t)(answers.Tree(ctx, 4194303, 0, -1)))
		require.Empty(t, must[[]proc.Process](t)(answers.Alive(ctx)))
		require.Empty(t, must[[]proc.Process](t)(answers.Alive(ctx, 4194303, 0, -1)))
		require.Empty(t, must[[]int](t)(answers.Marked(ctx, "")))
		require.Empty(t, must[[]int](t)(answers.Marked(ctx, `NO_SUCH'MARK="$(x)`)))
		// none, a serial line, one that is not there
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
	// The mark is in a big environment too, and in no command line.
	pid := startShell(t,
		"sleep 1000 & (PADDING=$(printf %0100000d 0) exec sleep 1000) & sleep 1000", mark+"'x")
	settled(t, pid, has("sleep", "sleep", "sleep"))
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
			for i, answers := range []answers{local{}, sh} {
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
					sh.do(t.Context(), "modes "+itoa(number)))).Modes)
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

// What whoever feeds a terminal has for it, and has not come to write, is dropped too: here by a
// program that is busy.
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
	defer func() { // a hangup does not end what is started with it ignored, as by nohup
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
		t.Skip("/proc/uptime is another's here")
	}
	require.LessOrEqual(t, before, between+10*time.Millisecond)
	require.LessOrEqual(t, between, after+10*time.Millisecond)
}

func TestSignal(t *testing.T) {
	got := make(chan os.Signal, 8)
	signal.Notify(got, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(got)
	self, ctx := os.Getpid(), t.Context()
	for _, answers := range []answers{startControl(t, 0), local{}} {
		require.Equal(t, 2, must[int](t)(answers.Signal(ctx, []int{self}, "USR1",
			proc.Signal(itoa(int(syscall.SIGUSR2))))))
		seen := map[os.Signal]bool{<-got: true, <-got: true}
		require.Equal(t, map[os.Signal]bool{syscall.SIGUSR1: true, syscall.SIGUSR2: true}, seen)
		require.Equal(t, 2, must[int](t)(answers.Signal(ctx, []int{self, 4194303, self}, "0")))
	}
}

func TestInterrupt(t *testing.T) {
	answers := map[string]answers{"inspect": local{}}
	for _, sh := range controlShells(t) {
		answers[strings.Join(sh, " ")] = startControl(t, 0, sh...)
	}
	for name, answers := range answers {
		t.Run(name, func(t *testing.T) {
			shell := startShell(t, "sleep 1000 | sleep 1000")
			settled(t, shell, has("sleep", "sleep"))
			require.True(t, must[bool](t)(answers.Interrupt(t.Context(), shell)))
			settled(t, shell, func(ps []proc.Process) bool {
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

// A question that is given up does not answer the next one, and a shell that does not answer is
// replaced.
func TestControlGivesUp(t *testing.T) {
	c := startControl(t, 0)
	must[time.Duration](t)(c.Uptime(t.Context()))
	require.NoError(t, syscall.Kill(c.shell.(*piped).cmd.Process.Pid, syscall.SIGSTOP))
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
