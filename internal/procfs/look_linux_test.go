package procfs

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/programs"
)

// A session is a shell on a terminal whose commands come from a pipe, as the engine's.
type session struct {
	t        testing.TB
	pid      int
	tty      string // the terminal's name
	terminal *os.File
	commands *os.File
}

func startSession(t testing.TB) *session {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this machine has no bash")
	}
	master, end, err := programs.OpenTerminal(24, 80)
	require.NoError(t, err)
	in, commands, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, end, end
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "TERMINAL="+end.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	require.NoError(t, cmd.Start())
	s := &session{t, cmd.Process.Pid, end.Name(), master, commands}
	in.Close()
	end.Close()
	output := make(chan []byte)
	go func() { // if nobody read the terminal, a program would block in writing
		b, _ := io.ReadAll(master)
		output <- b
	}()
	t.Cleanup(func() {
		pids := append(everyoneOn(s.tty), s.pid)
		for _, p := range Tree(pids...) { // those on the terminals of relays too
			pids = append(pids, p.PID)
		}
		Signal(pids, proc.SIGKILL)
		cmd.Wait()
		commands.Close()
		master.Close()
		if b := <-output; t.Failed() {
			t.Logf("on the terminal: %q", b)
		}
	})
	return s
}

// everyoneOn returns the processes that have the file open: that one, not one of the same name in a
// container.
func everyoneOn(path string) (pids []int) {
	file, err := os.Stat(path)
	if err != nil {
		return nil
	}
	for _, pid := range numbers("/proc") {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		for _, fd := range numbersAndZero(dir) {
			if open, err := os.Stat(filepath.Join(dir, fd)); err == nil &&
				os.SameFile(open, file) && pid != os.Getpid() {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

func numbersAndZero(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (s *session) run(command string) {
	s.t.Helper()
	_, err := fmt.Fprintf(s.commands, "eval %s <>%s\n", quote(command), s.tty)
	require.NoError(s.t, err)
}

func quote(s string) string {
	out := "'"
	for _, r := range s {
		if r == '\'' {
			out += `'\''`
		} else {
			out += string(r)
		}
	}
	return out + "'"
}

const patience = 30 * time.Second

// until looks until ok says so.
func (s *session) until(ok func(proc.Look) bool) (l proc.Look) {
	s.t.Helper()
	begin := time.Now()
	for n := 0; ; n++ {
		if l = Look(s.pid); ok(l) {
			return l
		}
		if time.Since(begin) > patience {
			require.FailNow(s.t, "the look does not come", "%+v\n%v", l, s.describe())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *session) describe() (text string) {
	for _, p := range Tree(s.pid) {
		call, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.PID))
		text += fmt.Sprintf("%+v\n%s", p, call)
	}
	return text
}

// idle waits until the shell reads its pipe.
func (s *session) idle() proc.Look {
	s.t.Helper()
	return s.until(func(l proc.Look) bool { return l.Reads != "" })
}

func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("this machine has no " + p)
		}
	}
}

func TestLookIdle(t *testing.T) {
	s := startSession(t)
	l := s.idle()
	require.Regexp(t, `^pipe:\[\d+\]$`, l.Reads)
	require.Equal(t, s.pid, l.Foreground)
	require.False(t, l.Gone)
	require.False(t, l.Hidden)
	require.Empty(t, l.Waits)
	require.Positive(t, l.Turns)
	require.GreaterOrEqual(t, l.Total, l.Turns)
	require.Equal(t, "bash", l.Args[0])
	require.NotEmpty(t, l.Image)
	require.True(t, l.Modes.Known)
	st, err := os.Stat(s.tty)
	require.NoError(t, err)
	require.EqualValues(t, st.Sys().(*syscall.Stat_t).Rdev, l.TTY)
}

func TestLookGone(t *testing.T) {
	require.Equal(t, proc.Look{Gone: true}, Look(1<<22+1))
	cmd := exec.Command("sh", "-c", ":")
	require.NoError(t, cmd.Start())
	// not reaped yet
	require.Eventually(t, func() bool {
		return Look(cmd.Process.Pid).Gone
	}, patience, time.Millisecond)
	cmd.Wait()
}

func TestLookImage(t *testing.T) {
	s := startSession(t)
	l := s.idle()
	s.run("exec cat")
	// a look takes its time, in which an exec may fall
	now := s.until(func(now proc.Look) bool { return len(now.Waits) == 1 && now.Image != l.Image })
	require.Equal(t, []string{"cat"}, now.Args)
	require.Equal(t, s.pid, now.Waits[0].PID)
}

// What runs is seen to run, and its turns are counted.
func TestLookRuns(t *testing.T) {
	s := startSession(t)
	l := s.idle()
	s.run("while :; do :; done & while :; do :; done")
	s.until(func(l proc.Look) bool { return l.Runs && l.Reads == "" })
	s.until(func(m proc.Look) bool { return m.Total > l.Total+1 && m.Turns > l.Turns })
}

type waiting struct {
	name, needs, command string
	waits                string // the waiting program's name; "": any
	together             bool   // not Alone
	modes                proc.Modes
}

var (
	line   = proc.Modes{Known: true}
	secret = proc.Modes{Known: true, NoEcho: true}
	keys   = proc.Modes{Known: true, Raw: true, NoEcho: true}
)

const python = "/usr/bin/python3"

func py(script string) string { return python + " -c " + quote(script) }

var waitingPrograms = []waiting{
	{name: "read in the shell", command: "read x", waits: "bash"},
	{name: "read in bash", command: "bash -c 'read x; :'", waits: "bash"},
	{name: "read with a limit", command: "bash -c 'read -t 30 x; :'", together: true},
	{name: "secret", command: "bash -c 'read -s x; :'", modes: secret},
	{name: "one key", command: "bash -c 'read -s -n1 x; :'", modes: keys},
	{name: "cat", command: "cat", waits: "cat"},
	{name: "pipeline", command: "cat | sort", waits: "cat"},
	{name: "dash", needs: "dash", command: "dash -c 'read x; :'", waits: "dash"},
	{name: "busybox", needs: "busybox", command: "busybox sh -c 'read x; :'", waits: "busybox"},
	{name: "busybox cat", needs: "busybox", command: "busybox cat", waits: "busybox"},
	{name: "/dev/tty", command: "bash -c 'read x </dev/tty' </dev/null"},
	{name: "min 0 time 200", command: "stty -icanon -echo min 0 time 200; cat", modes: keys,
		together: true},
	{name: "input", needs: python, command: py("input()")},
	{name: "select", needs: python, command: py("import select; select.select([0],[],[])")},
	{name: "select with exceptions", needs: python, command: py(
		"import select; select.select([0],[],[0])")},
	{name: "select with a limit", needs: python, command: py(
		"import select; select.select([0],[],[],60)"), together: true},
	{name: "select with a pipe", needs: python, command: py(
		"import os,select; select.select([0,os.pipe()[0]],[],[])"), together: true},
	{name: "high descriptor", needs: python, command: py(
		"import os,select; os.dup2(0,200); os.dup2(0,64); select.select([200,64],[],[])")},
	{name: "poll", needs: python, command: py("import select; p=select.poll(); p.register(0,1); " +
		"p.poll()")},
	{name: "poll two numbers", needs: python, command: py(
		"import os,select; p=select.poll(); p.register(0,1); p.register(os.dup(0),1); p.poll()")},
	{name: "poll with a limit", needs: python, command: py(
		"import select; p=select.poll(); p.register(0,1); p.poll(60000)"), together: true},
	{name: "epoll", needs: python, command: py("import select; p=select.epoll(); " +
		"p.register(0,1); p.poll()")},
	{name: "epoll in epoll in select", needs: python,
		command: py("import select; p,q=select.epoll(),select.epoll(); p.register(0,1); " +
			"q.register(p,1); select.select([q],[],[])")},
	{name: "epoll in select, and a pipe", needs: python,
		command: py("import os,select; p=select.epoll(); p.register(0,1); " +
			"p.register(os.pipe()[0],1); select.select([p],[],[])"), together: true},
	{name: "epoll with a limit", needs: python, command: py(
		"import select; p=select.epoll(); p.register(0,1); p.poll(60)"), together: true},
	{name: "asyncio", needs: python, together: true, command: py(`import asyncio
async def main():
    asyncio.get_running_loop().add_reader(0, print)
    await asyncio.sleep(60)
asyncio.run(main())`)},
	{name: "readv", needs: python, command: py("import os; os.readv(0,[bytearray(9)])")},
	{name: "splice", needs: python, command: py("import os; os.splice(0,os.pipe()[1],9)")},
	{name: "thread", needs: python, command: py(`import threading,os
t=threading.Thread(target=lambda: os.read(0,9)); t.start(); t.join()`)},
	{name: "busy thread", needs: python, together: true, command: py(`import threading,os
def spin():
    while True: pass
threading.Thread(target=spin,daemon=True).start()
os.read(0,9)`)},
	{name: "main thread gone", needs: python, command: py(`import threading,os,ctypes
threading.Thread(target=lambda: os.read(0,9)).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine=="x86_64" else 93, 0)`)},
	{name: "setsid", needs: "setsid", command: "setsid -w sh -c 'read x; :'"},
	{name: "left behind", needs: "setsid", command: "(setsid sh -c 'read x; :' <$TERMINAL & " +
		"sleep 0.1); sleep 60"},
	{name: "left behind in the group", command: "sh -c '(sh -c \"read x; :\" <$TERMINAL &) ; " +
		"sleep 60'"},
	{name: "script", needs: "script", command: "script -qc cat /dev/null", waits: "cat"},
	{name: "script in script", needs: "script",
		command: `script -qc "script -qc cat /dev/null" /dev/null`, waits: "cat"},
	{name: "vim in script in script", needs: "vim", modes: keys,
		command: `script -qc "script -qc 'vim -u NONE' /dev/null" /dev/null`, waits: "vim"},
	{name: "sudo", needs: "sudo", command: "sudo sh -c 'read x; :'"},
	{name: "vim", needs: "vim", command: "TERM=xterm vim -u NONE", modes: keys, waits: "vim"},
	{name: "socat", needs: "socat", command: "socat -,raw,echo=0 EXEC:cat,pty,setsid,ctty",
		waits: "cat", modes: line},
	{name: "socat in lines", needs: "socat", command: "socat - EXEC:cat,pty,setsid,ctty",
		waits: "cat", modes: line},
	{name: "pty.spawn", needs: python, command: py("import pty; pty.spawn(['cat'])"), waits: "cat"},
	{name: "tmux", needs: "tmux", command: "TERM=xterm tmux -L ss$$ -f /dev/null new-session cat",
		waits: "cat"},
	{name: "screen", needs: "screen", command: "TERM=xterm screen -c /dev/null cat", waits: "cat"},
}

func (s *session) await(c waiting) {
	s.t.Helper()
	if c.modes == (proc.Modes{}) {
		c.modes = line
	}
	s.run(c.command)
	in := 0
	// three in a row, for a program that starts reads other things too
	s.until(func(l proc.Look) bool {
		if len(l.Waits) == 1 && !l.Hidden && (c.waits == "" || l.Waits[0].Name == c.waits) &&
			l.Waits[0].Alone == !c.together &&
			l.Waits[0].Modes == c.modes && l.Waits[0].Turns > 0 && l.Waits[0].TID > 0 {
			in++
		} else {
			in = 0
		}
		return in == 3
	})
}

func TestWaiting(t *testing.T) {
	for _, c := range waitingPrograms {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != "" {
				need(t, c.needs)
			}
			s := startSession(t)
			s.await(c)
		})
	}
}

// After ^Z and fg a poll goes on as restart_syscall.
func TestWaitingAgain(t *testing.T) {
	need(t, python)
	s := startSession(t)
	s.await(waiting{command: py("import select; p=select.poll(); p.register(0,1); p.poll(60000)"),
		together: true})
	s.terminal.Write([]byte{'Z' & 0x1f})
	s.idle()
	require.Empty(t, Look(s.pid).Waits)
	s.await(waiting{command: "fg", together: true})
}

var neverWaiting = []struct{ name, needs, command string }{
	{"sleep", "", "sleep 60"},
	{"busy", "", "bash -c 'while :; do :; done'"},
	{"pipe", "", "bash -c 'read x < <(sleep 60)'"},
	{"pipe with a limit", "", "read -t 60 x < <(sleep 60)"},
	{"fifo", "", "mkfifo f; exec 5<>f; bash -c 'read x <f'"},
	{"raw, select of a pipe", python, "stty -icanon -echo; " +
		py("import os,select; select.select([os.pipe()[0]],[],[])")},
	{"poll for hang-up", python, py("import select; p=select.poll(); p.register(0,0); p.poll()")},
	{"poll in the background", python, py("import select; p=select.poll(); p.register(0,1); "+
		"p.poll()") + " & sleep 60"},
	{"background", "", "cat & sleep 60"},
	{"script", "script", "script -qc 'sleep 60' /dev/null"},
	{"sudo", "sudo", "sudo sleep 60"},
	{"socat", "socat", "socat - EXEC:'sleep 60',pty,setsid,ctty"},
	{"tmux", "tmux", "TERM=xterm tmux -L ss$$ -f /dev/null new-session 'sleep 60'"},
	{"master without anybody", python, py("import os,tty; tty.setraw(0); " +
		"m=os.open('/dev/ptmx',os.O_RDWR); os.read(0,1)")},
}

func TestNeverWaiting(t *testing.T) {
	for _, c := range neverWaiting {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != "" {
				need(t, c.needs)
			}
			s := startSession(t)
			s.run(c.command + "; :")
			s.until(func(l proc.Look) bool { return l.Reads == "" && len(Tree(s.pid)) > 1 })
			time.Sleep(100 * time.Millisecond) // for the program to come as far as it does
			for range 100 {
				l := Look(s.pid)
				require.Empty(t, l.Waits, s.describe())
				require.Empty(t, l.Reads)
				require.False(t, l.Hidden)
				time.Sleep(time.Millisecond)
			}
		})
	}
}

func TestStopped(t *testing.T) {
	s := startSession(t)
	s.await(waiting{command: "cat", waits: "cat"})
	s.terminal.Write([]byte{'Z' & 0x1f})
	s.idle()
	for range 100 {
		require.Empty(t, Look(s.pid).Waits)
	}
	s.await(waiting{command: "fg", waits: "cat"})
}

func TestProgram(t *testing.T) {
	s := startSession(t)
	s.idle()
	dir, env := Program(s.pid)
	require.NotEmpty(t, dir)
	require.Contains(t, env, "PATH="+os.Getenv("PATH"))
	s.run("cd /; export A=b; exec cat")
	s.until(func(l proc.Look) bool { return len(l.Waits) == 1 })
	dir, env = Program(s.pid)
	require.Equal(t, "/", dir)
	require.Contains(t, env, "A=b")
	dir, env = Program(1<<22 + 1)
	require.Empty(t, dir)
	require.Nil(t, env)
}
