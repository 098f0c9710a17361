package procfs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/shellquote"
)

// A waitCase is a command that waits for the terminal.
type waitCase struct {
	name, needs, command string
	waits                string     // the name of the waiting program; "": any
	notAlone, othersRun  bool       // proc.Wait.Alone is false, OthersRun is true
	modes                proc.Modes // the zero value stands for line
}

var (
	line   = proc.Modes{Known: true}
	secret = proc.Modes{Known: true, NoEcho: true}
	keys   = proc.Modes{Known: true, Raw: true, NoEcho: true}
)

const python = "/usr/bin/python3"

func py(script string) string { return python + " -c " + shellquote.Quote(script) }

var waitingPrograms = []waitCase{
	{name: "read in the shell", command: "read x", waits: "bash"},
	{name: "read in bash", command: "bash -c 'read x; :'", waits: "bash"},
	{name: "read with a limit", command: "bash -c 'read -t 30 x; :'", notAlone: true},
	{name: "secret", command: "bash -c 'read -s x; :'", modes: secret},
	{name: "one key", command: "bash -c 'read -s -n1 x; :'", modes: keys},
	{name: "cat", command: "cat", waits: "cat"},
	{name: "pipeline", command: "cat | sort", waits: "cat"},
	{name: "dash", needs: "dash", command: "dash -c 'read x; :'", waits: "dash"},
	{name: "busybox", needs: "busybox", command: "busybox sh -c 'read x; :'", waits: "busybox"},
	{name: "busybox cat", needs: "busybox", command: "busybox cat", waits: "busybox"},
	{name: "/dev/tty", command: "bash -c 'read x </dev/tty' </dev/null"},
	{name: "min 0 time 200", command: "stty -icanon -echo min 0 time 200; cat", modes: keys,
		notAlone: true},
	{name: "input", needs: python, command: py("input()")},
	{name: "select", needs: python, command: py("import select; select.select([0],[],[])")},
	{name: "select with exceptions", needs: python, command: py(
		"import select; select.select([0],[],[0])")},
	{name: "select with a limit", needs: python, command: py(
		"import select; select.select([0],[],[],60)"), notAlone: true},
	{name: "select with a pipe", needs: python, command: py(
		"import os,select; select.select([0,os.pipe()[0]],[],[])")},
	{name: "high descriptor", needs: python, command: py(
		"import os,select; os.dup2(0,200); os.dup2(0,64); select.select([200,64],[],[])")},
	{name: "poll", needs: python, command: py("import select; p=select.poll(); p.register(0,1); " +
		"p.poll()")},
	{name: "poll two numbers", needs: python, command: py(
		"import os,select; p=select.poll(); p.register(0,1); p.register(os.dup(0),1); p.poll()")},
	{name: "poll with a limit", needs: python, command: py(
		"import select; p=select.poll(); p.register(0,1); p.poll(60000)"), notAlone: true},
	{name: "epoll", needs: python, command: py("import select; p=select.epoll(); " +
		"p.register(0,1); p.poll()")},
	{name: "epoll in epoll in select", needs: python,
		command: py("import select; p,q=select.epoll(),select.epoll(); p.register(0,1); " +
			"q.register(p,1); select.select([q],[],[])")},
	{name: "epoll in select, and a pipe", needs: python,
		command: py("import os,select; p=select.epoll(); p.register(0,1); " +
			"p.register(os.pipe()[0],1); select.select([p],[],[])")},
	{name: "epoll with a limit", needs: python, command: py(
		"import select; p=select.epoll(); p.register(0,1); p.poll(60)"), notAlone: true},
	{name: "asyncio", needs: python, notAlone: true, command: py(`import asyncio
async def main():
    asyncio.get_running_loop().add_reader(0, print)
    await asyncio.sleep(60)
asyncio.run(main())`)},
	{name: "readv", needs: python, command: py("import os; os.readv(0,[bytearray(9)])")},
	{name: "splice", needs: python, command: py("import os; os.splice(0,os.pipe()[1],9)")},
	{name: "thread", needs: python, command: py(`import threading,os
t=threading.Thread(target=lambda: os.read(0,9)); t.start(); t.join()`)},
	{name: "busy thread", needs: python, notAlone: true, command: py(`import threading,os
def spin():
    while True: pass
threading.Thread(target=spin,daemon=True).start()
os.read(0,9)`)},
	{name: "main thread gone", needs: python, command: py(`import threading,os,ctypes
threading.Thread(target=lambda: os.read(0,9)).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine=="x86_64" else 93, 0)`)},
	{name: "setsid", needs: "setsid", command: "setsid -w sh -c 'read x; :'"},
	{name: "left behind", needs: "setsid", command: "(setsid sh -c 'read x; :' <$TERMINAL & " +
		"sleep 0.1); sleep 60", othersRun: true},
	{name: "left behind in the group", command: "sh -c '(sh -c \"read x; :\" <$TERMINAL &) ; " +
		"sleep 60'", othersRun: true},
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

// runAndAwait runs the command and waits until three looks in a row are what c says. One look is
// not enough, because a program that starts may wait for other things too.
func (s *session) runAndAwait(c waitCase) {
	s.t.Helper()
	if c.modes == (proc.Modes{}) {
		c.modes = line
	}
	s.run(c.command)
	in := 0
	s.until(func(l proc.Look) bool {
		if len(l.Waits) == 1 && !l.Hidden && (c.waits == "" || l.Waits[0].Name == c.waits) &&
			l.Waits[0].Alone == !c.notAlone && l.Waits[0].OthersRun == c.othersRun &&
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
			s.runAndAwait(c)
		})
	}
}

// After ^Z and fg, an interrupted poll continues as restart_syscall.
func TestWaitAfterContinue(t *testing.T) {
	need(t, python)
	s := startSession(t)
	s.runAndAwait(waitCase{notAlone: true,
		command: py("import select; p=select.poll(); p.register(0,1); p.poll(60000)")})
	s.terminal.Write([]byte{'Z' & 0x1f})
	s.idle()
	require.Empty(t, Look(s.pid).Waits)
	s.runAndAwait(waitCase{command: "fg", notAlone: true})
}

var neverWaiting = []struct{ name, needs, command string }{
	{"sleep", "", "sleep 600"},
	{"busy", "", "bash -c 'while :; do :; done'"},
	{"pipe", "", "bash -c 'read x < <(sleep 600)'"},
	{"pipe with a limit", "", "read -t 600 x < <(sleep 600)"},
	{"fifo", "", "mkfifo f; exec 5<>f; bash -c 'read x <f'"},
	{"raw, select of a pipe", python, "stty -icanon -echo; " +
		py("import os,select; select.select([os.pipe()[0]],[],[])")},
	{"poll for hang-up", python, py("import select; p=select.poll(); p.register(0,0); p.poll()")},
	{"poll in the background", python, py("import select; p=select.poll(); p.register(0,1); "+
		"p.poll()") + " & sleep 600"},
	{"background", "", "cat & sleep 600"},
	{"script", "script", "script -qc 'sleep 600' /dev/null"},
	{"sudo", "sudo", "sudo sleep 600"},
	{"socat", "socat", "socat - EXEC:'sleep 600',pty,setsid,ctty"},
	{"tmux", "tmux", "TERM=xterm tmux -L ss$$ -f /dev/null new-session 'sleep 600'"},
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
			time.Sleep(100 * time.Millisecond) // for the program to reach its wait
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
