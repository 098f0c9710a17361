package procfs

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/shellquote"
)

// goProgram is the environment variable that makes the test binary the program of this name.
const goProgram = "PROCFS_TEST_PROGRAM"

func init() {
	name := os.Getenv(goProgram)
	if name == "" {
		return
	}
	pump := func() { go io.Copy(io.Discard, os.Stdin) }
	switch name {
	case "ask":
		os.Stdin.Read(make([]byte, 1))
	case "ask in a goroutine":
		pump()
		select {}
	case "sleep":
		pump()
		time.Sleep(time.Minute)
	case "listen":
		pump()
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		l.Accept()
	}
	os.Exit(0)
}

// goRun is a command that executes the program of that name.
func goRun(name string) string {
	return goProgram + "=" + shellquote.Quote(name) + " " + shellquote.Quote(os.Args[0])
}

// pump is the begin of a program with a thread that reads the terminal.
const pump = `import ctypes,fcntl,os,select,signal,socket,sys,threading,time
libc=ctypes.CDLL(None)
def thread(f,*a): threading.Thread(target=f,args=a,daemon=True).start()
def pump(): thread(os.read,0,9)
`

// Each case is a line of the rule, or of what makes a file ready. Those that work while they read
// their terminal are never alone.
var ruleCases = []waitCase{
	{name: "main thread sleeps", command: py(pump + "pump(); time.sleep(60)"), notAlone: true},
	{name: "main thread sleeps for a day", command: py(pump + "pump(); time.sleep(86400)")},
	{name: "another thread sleeps", command: py(pump + "thread(time.sleep,60); os.read(0,9)"),
		notAlone: true},
	{name: "main thread in a futex", command: py(pump + "pump(); threading.Event().wait(60)"),
		notAlone: true},
	{name: "main thread in a futex for a day",
		command: py(pump + "pump(); threading.Event().wait(86400)")},
	{name: "main thread asks beside a tick",
		command: py(pump + "thread(threading.Event().wait,60); os.read(0,9)")},
	{name: "main thread waits for a tick", notAlone: true,
		command: py(pump + "t=threading.Thread(target=threading.Event().wait,args=(60,)); " +
			"t.start(); pump(); t.join()")},
	{name: "the oldest thread asks", command: py(pump + `pump(); time.sleep(.1)
for _ in range(3): thread(threading.Event().wait,60)
threading.Event().wait()`)},
	{name: "the youngest thread asks", notAlone: true, command: py(pump +
		`for _ in range(3): thread(threading.Event().wait,60)
pump()
threading.Event().wait()`)},
	{name: "a select with a limit of a day", command: py("import select; " +
		"select.select([0],[],[],86400)")},
	{name: "another thread polls with a limit", notAlone: true, command: py(pump +
		"thread(select.select,[os.pipe()[0]],[],[],60); os.read(0,9)")},
	{name: "another thread polls its own pipe", command: py(pump +
		"thread(select.select,[os.pipe()[0]],[],[]); os.read(0,9)")},

	{name: "a child asks", command: "bash -c '(read x); :'"},
	{name: "a child works", notAlone: true, othersRun: true, command: py(pump +
		"import subprocess; pump(); subprocess.run(['sleep','60'])")},
	{name: "a child is stopped", command: "bash -c 'sleep 600 & kill -STOP $!; read x; :'"},
	{name: "a child works beside", othersRun: true,
		command: "bash -c 'sleep 600 & read x; :'"},
	{name: "a job works", command: "sleep 600 & read x"},
	{name: "one child asks, one works", notAlone: true, othersRun: true,
		command: "bash -c 'read x <$TERMINAL & sleep 600 & wait'"},
	{name: "event loop with a child", notAlone: true, othersRun: true, command: py(pump +
		"import subprocess; r,w=os.pipe(); os.set_blocking(w,False); " +
		"signal.signal(signal.SIGCHLD,print); signal.set_wakeup_fd(w); " +
		"subprocess.Popen(['sleep','60']); select.select([0,r],[],[])")},
	{name: "a pipe from a child that asks", command: py(pump + `r,w=os.pipe()
if not os.fork(): os.write(w,os.read(0,9))
os.close(w); os.read(r,9)`)},
	{name: "a pipe to one that works", othersRun: true, command: "cat | sh -c 'sleep 600; :'"},

	{name: "pause", command: py(pump + "pump(); signal.pause()"), notAlone: true},
	{name: "alarm", command: py(pump + "pump(); signal.alarm(60); libc.pause()"), notAlone: true},
	{name: "timeout", needs: "timeout", command: "timeout --foreground 60 cat", notAlone: true},
	{name: "sigtimedwait", notAlone: true, command: py(pump +
		"thread(signal.sigtimedwait,[signal.SIGUSR1],60); os.read(0,9)")},
	{name: "sigwait in another thread", command: py(pump +
		"thread(signal.sigwait,[signal.SIGUSR1]); os.read(0,9)")},

	{name: "eventfd", command: selects("os.eventfd(0)")},
	{name: "signalfd", command: selects("libc.signalfd(-1,(ctypes.c_ulong*16)(),0)")},
	{name: "timerfd that is not armed", command: selects("libc.timerfd_create(1,0)")},
	{name: "timerfd", notAlone: true, command: py(pump + "t=libc.timerfd_create(1,0); " +
		"libc.timerfd_settime(t,0,(ctypes.c_long*4)(0,0,60,0),None); select.select([0,t],[],[])")},
	{name: "inotify", command: selects("libc.inotify_init()"), notAlone: true},
	{name: "pidfd of a child that works", notAlone: true, othersRun: true, command: py(pump +
		"import subprocess; select.select([0,os.pidfd_open(subprocess.Popen(['sleep','60']).pid)]" +
		",[],[])")},
	{name: "socket pair", command: py(pump +
		"a,b=socket.socketpair(); select.select([0,a],[],[])")},
	{name: "socket pair with a child that works", notAlone: true, othersRun: true,
		command: py(pump + `a,b=socket.socketpair()
if not os.fork(): time.sleep(60)
b.close(); select.select([0,a],[],[])`)},
	{name: "listening socket", notAlone: true, command: py(pump +
		"s=socket.create_server(('127.0.0.1',0)); select.select([0,s],[],[])")},
	{name: "TCP to a child that waits for it", command: py(pump + `
l=socket.create_server(('127.0.0.1',0))
a=socket.create_connection(l.getsockname()); b=l.accept()[0]; l.close()
if not os.fork(): a.close(); b.recv(9)
b.close(); select.select([0,a],[],[])`)},
	{name: "FIFO of its own", command: "mkfifo f; " + py(pump+
		"f=os.open('f',os.O_RDWR); select.select([0,f],[],[])")},
	{name: "FIFO of a job", notAlone: true, command: "mkfifo f; sleep 600 >f & " + py(pump+
		"f=os.open('f',os.O_RDONLY); select.select([0,f],[],[])")},
	{name: "a lock", notAlone: true, command: py(pump + `f,g=open('f','w'),open('f','w')
fcntl.flock(f,2); thread(fcntl.flock,g,2); os.read(0,9)`)},
	{name: "a full pipe", command: py(pump +
		"thread(os.write,os.pipe()[1],b'x'*100000); os.read(0,9)")},

	{name: "Go asks", command: goRun("ask")},
	{name: "Go asks in a goroutine", command: goRun("ask in a goroutine")},
	{name: "Go sleeps", command: goRun("sleep"), notAlone: true},
	{name: "Go listens", command: goRun("listen"), notAlone: true},

	{name: "work beside a relay", needs: "script", othersRun: true,
		command: "script -qc cat /dev/null | sh -c 'sleep 600; :'"},
	{name: "work behind a relay", needs: "script", othersRun: true,
		command: "script -qc \"bash -c 'sleep 600 & read x; :'\" /dev/null"},
}

// selects is a program that selects its terminal and the descriptor that the expression makes.
func selects(descriptor string) string {
	return py(pump + "fd=" + descriptor + "; select.select([0,fd],[],[])")
}

func TestRule(t *testing.T) {
	need(t, python)
	for _, c := range ruleCases {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != "" {
				need(t, c.needs)
			}
			s := startSession(t)
			s.runAndAwait(c)
			if !c.notAlone && !c.othersRun {
				return
			}
			for range 30 {
				l := Look(s.pid)
				for _, w := range l.Waits {
					require.False(t, w.Alone && !w.OthersRun, "%+v\n%s", l, s.describe())
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// What is not looked at may go on by itself.
func TestRuleBounds(t *testing.T) {
	need(t, python)
	for name, script := range map[string]string{
		"threads": "for _ in range(5000): thread(threading.Event().wait)\nos.read(0,9)",
		"descriptors": "import resource\n" +
			"resource.setrlimit(resource.RLIMIT_NOFILE,(12000,12000))\n" +
			"p=select.poll(); p.register(0,1); r=os.pipe()[0]\n" +
			"for _ in range(10000): p.register(os.dup(r),1)\np.poll()",
	} {
		t.Run(name, func(t *testing.T) {
			s := startSession(t)
			s.run("ulimit -n 12000; " + py(pump+"threading.stack_size(65536)\n"+script))
			s.until(func(l proc.Look) bool { return len(l.Waits) == 1 })
			for range 3 {
				l := Look(s.pid)
				require.Len(t, l.Waits, 1)
				require.False(t, l.Waits[0].Alone)
			}
		})
	}
}
