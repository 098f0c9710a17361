package outward

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// An outside is an Outward whose connections say what they are for.
type outside struct {
	*Outward
	t     testing.TB
	ready atomic.Bool
}

var nameServers atomic.Int32

// ownNameServer returns an address that no other test has, nor one of another process. The port is
// none of those that the kernel chooses.
func ownNameServer() netip.AddrPort {
	pid, n := os.Getpid(), nameServers.Add(1)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + pid>>8%60), byte(pid),
		byte(n)}), 5300)
}

// newOutside starts an Outward, and ends it with the test. Its name server has an address of its
// own.
func newOutside(t testing.TB) *outside {
	t.Helper()
	return newOutsideWith(t, unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
}

// newOutsideWith is newOutside with an argument for install.
func newOutsideWith(t testing.TB, killable uintptr) *outside {
	t.Helper()
	testenv.NeedsAll(t, "twenty programs with a filter each")
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	o := &outside{t: t}
	o.ready.Store(true)
	var err error
	o.Outward, err = start(ownNameServer(), o.ready.Load, killable)
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o
}

// listen begins to take connections.
func (o *outside) listen() *Listener {
	o.t.Helper()
	l, err := o.Listen()
	require.NoError(o.t, err)
	o.t.Cleanup(func() { require.NoError(o.t, l.Close()) })
	return l
}

// tell tells each program what its connection is for.
func (o *outside) tell() {
	l := o.listen()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			to := c.(*Conn)
			fmt.Fprintf(c, "%s %s %d", net.JoinHostPort(to.Host, fmt.Sprint(to.Port)), to.Program,
				to.Process)
			_ = c.Close()
		}
	}()
}

// begin is what the programs begin with.
const begin = `
import ctypes, errno, fcntl, mmap, os, select, signal, struct, tempfile, threading, time
from socket import *
libc = ctypes.CDLL(None, use_errno=True)
own = "%s %d" % (open("/proc/self/comm").read().strip(), os.getpid())
def hear(s):
    s.settimeout(10)
    said = s.recv(200).decode()
    assert said.endswith(own), said
    return said[:-len(own)-1]
def talk(family, to):
    with socket(family) as s:
        s.connect(to)
        return hear(s)
def fails(f):
    try: f()
    except OSError as e: return errno.errorcode[e.errno]
    return "ok"
def inet(host, port):
    return struct.pack("=H", AF_INET) + struct.pack("!H", port) + inet_aton(host) + bytes(8)
def raw(fd, address, n):
    return "ok" if libc.connect(fd, address, n) == 0 else errno.errorcode[ctypes.get_errno()]
`

// start starts a program with the filter.
func (o *outside) start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	_, err := o.Fork(func() (int, error) { return 0, cmd.Start() })
	require.NoError(t, err)
}

// run runs a program with the filter, and returns what it prints.
func (o *outside) run(t testing.TB, program string) string {
	t.Helper()
	var out strings.Builder
	cmd := exec.Command("python3", "-ISc", begin+program)
	cmd.Stdout, cmd.Stderr = &out, &out
	o.start(t, cmd)
	require.NoError(t, cmd.Wait(), out.String())
	return strings.TrimSpace(out.String())
}

// TestConnect checks where connects of many kinds go, by programs that know nothing of it.
func TestConnect(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	o.tell()
	name := o.names.address("a.example.com").String()
	own := "127.0.0.1"
	for _, ip := range o.own {
		if ip.Is4() && !ip.IsLoopback() {
			own = ip.String()
		}
	}
	for _, c := range []struct{ name, program, want string }{
		{"IPv4", `print(talk(AF_INET, ("203.0.113.1", 80)))`, "203.0.113.1:80"},
		{"IPv6", `print(talk(AF_INET6, ("2001:db8::1", 443)))`, "[2001:db8::1]:443"},
		{"mapped", `print(talk(AF_INET6, ("::ffff:203.0.113.1", 22)))`, "203.0.113.1:22"},
		{"name", `print(talk(AF_INET, ("` + name + `", 5432)))`, "a.example.com:5432"},
		{"metadata", `print(talk(AF_INET, ("169.254.169.254", 80)))`, "169.254.169.254:80"},
		{"thread", `
t = threading.Thread(target=lambda: print(talk(AF_INET, ("203.0.113.1", 80))))
t.start(); t.join()`, "203.0.113.1:80"},
		{"epoll and options", `
s = socket(); s.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1); s.setblocking(False)
e = select.epoll(); e.register(s, select.EPOLLIN)
s.connect_ex(("203.0.113.1", 80))
assert e.poll(10)
print(hear(s), s.getsockopt(SOL_SOCKET, SO_KEEPALIVE))`, "203.0.113.1:80 1"},
		{"the same memory", `
a = ctypes.create_string_buffer(inet("203.0.113.1", 80), 16)
for i in range(3):
    s = socket(); print(raw(s.fileno(), a, 16), hear(s), end=" ")`,
			"ok 203.0.113.1:80 ok 203.0.113.1:80 ok 203.0.113.1:80"},
		{"the same memory in a child", `
a = ctypes.create_string_buffer(inet("203.0.113.1", 80), 16)
s = socket(); raw(s.fileno(), a, 16); hear(s)
if os.fork() == 0:
    own = own.split()[0] + " " + str(os.getpid())
    s = socket(); print(raw(s.fileno(), a, 16), hear(s), flush=True); os._exit(0)
os.wait()`, "ok 203.0.113.1:80"},
		{"memory that only reads", `
f = tempfile.TemporaryFile(); f.write(inet("203.0.113.1", 80)); f.flush()
for how in mmap.MAP_PRIVATE, mmap.MAP_SHARED:
    libc.mmap.restype = ctypes.c_void_p
    m = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, how, f.fileno(), ctypes.c_long(0))
    s = socket(); os.set_inheritable(s.fileno(), how == mmap.MAP_PRIVATE)
    print(raw(s.fileno(), ctypes.c_void_p(m), 16), hear(s), os.get_inheritable(s.fileno()),
        fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK > 0, end=" ")`,
			"ok 203.0.113.1:80 True True ok 203.0.113.1:80 False True"},
		{"wrong calls", `
s = socket(); a = ctypes.create_string_buffer(inet("203.0.113.1", 80), 128)
print(raw(s.fileno(), ctypes.c_void_p(8), 16), raw(s.fileno(), a, 4), raw(s.fileno(), a, 1000),
    raw(s.fileno(), a, -1), raw(os.pipe()[0], a, 16), raw(999, a, 16))`,
			"EFAULT EINVAL EINVAL EINVAL ENOTSOCK EBADF"},
		{"Unix sockets", `
tmp = tempfile.TemporaryDirectory()
longest = tmp.name + "/" + (106 - len(tmp.name))*"x"
for name in "\0outward-%d" % os.getpid(), longest:
    l = socket(AF_UNIX); l.bind(name); l.listen(); s = socket(AF_UNIX); s.connect(name)
    l.accept()[0].send(b"here"); print(s.recv(10).decode(), end=" ")`, "here here"},
		{"loopback", `
for host in "127.0.0.1", "127.200.0.1", "127.64.0.200", "0.0.0.0", "` + own + `":
    l = socket(); l.bind((host, 0)); l.listen(); s = socket(); s.connect(l.getsockname())
    print(s.getpeername() == l.getsockname() or host, end=" ")`, "True True True 0.0.0.0 True"},
		{"UDP", `
u = lambda to: fails(lambda: socket(AF_INET, SOCK_DGRAM).connect(to))
print(u(("203.0.113.1", 443)), u(("127.0.0.1", 443)), u(("` + name + `", 443)))`,
			"ENETUNREACH ok ok"},
		{"other name servers", `
q = struct.pack("!6H", 7, 256, 1, 0, 0, 0) + b"\1b\7example\3com\0" + struct.pack("!2H", 1, 1)
for host in "203.0.113.53", "2001:db8::53":
    s = socket(AF_INET6 if ":" in host else AF_INET, SOCK_DGRAM); s.connect((host, 53)); s.send(q)
    a = s.recv(500); t = socket(); t.connect(("203.0.113.53", 53))
    t.send(struct.pack("!H", len(q)) + q)
    print(a == t.recv(500)[2:], inet_ntoa(a[-4:])[:7], end=" ")`,
			"True 127.64. True 127.64."},
		{"another system call", `
s = socket(AF_INET, SOCK_DGRAM)
print(fails(lambda: s.sendto(b"x", ("127.0.0.1", 9))))`, "ok"},
		{"signals", `
n = 0
def tick(*_):
    global n; n += 1
signal.signal(signal.SIGALRM, tick); signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
end = time.monotonic() + 10; heard = set()
while (n < 50 or len(heard) < 1) and time.monotonic() < end:
    heard.add(talk(AF_INET, ("203.0.113.1", 80)))
signal.setitimer(signal.ITIMER_REAL, 0); print(heard, n >= 50)`, "{'203.0.113.1:80'} True"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, o.run(t, c.program))
		})
	}
}

// TestEarlierKernel checks what programs have where the kernel has no flag by which signals wait.
func TestEarlierKernel(t *testing.T) {
	t.Parallel()
	o := newOutsideWith(t, 0)
	o.tell()
	require.Equal(t, "203.0.113.1:80 [2001:db8::1]:443", o.run(t, `
print(talk(AF_INET, ("203.0.113.1", 80)), talk(AF_INET6, ("2001:db8::1", 443)))`))
	// An interrupted connect is made again, if the handler has SA_RESTART; each goes the same way.
	require.Equal(t, "{'203.0.113.1:80'}", o.run(t, `
n = 0
def tick(*_):
    global n; n += 1
    if n == 100: signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, tick); signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
heard = set()
while n < 100: heard.add(talk(AF_INET, ("203.0.113.1", 80)))
print(heard)`))
}

// TestNobodyServes checks that connects are refused at once, and succeed when somebody serves.
func TestNobodyServes(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	const program = `print(fails(lambda: talk(AF_INET, ("203.0.113.1", 80))))`
	require.Equal(t, "ECONNREFUSED", o.run(t, program))
	l, err := o.Listen()
	require.NoError(t, err)
	_, err = o.Listen()
	require.ErrorIs(t, err, unix.EADDRINUSE)
	o.ready.Store(false)
	require.Equal(t, "ECONNREFUSED", o.run(t, program))
	o.ready.Store(true)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, "ECONNREFUSED", o.run(t, program))
	o.tell()
	require.Equal(t, "ok", o.run(t, program))
}

// TestDead checks that a connection that nobody has any longer is not announced, and that one is
// that has ended its own direction, or has sent something and gone.
func TestDead(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	l := o.listen()
	cmd := exec.Command("python3", "-ISc", begin+`
for i in range(300):
    s = socket(); s.connect(("203.0.113.1", 80))
    if i % 3 == 1: s.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    if i % 3 == 2: s.shutdown(SHUT_WR)
    s.close()
sent = socket(); sent.connect(("203.0.113.2", 80)); sent.send(b"gone"); sent.close()
half = socket(); half.connect(("203.0.113.3", 80)); half.shutdown(SHUT_WR)
whole = socket(); whole.connect(("203.0.113.4", 80))
print("connected", flush=True)
print(half.recv(100).decode(), flush=True)`)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	o.start(t, cmd)
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "connected\n", line)
	var half net.Conn
	for _, host := range []string{"203.0.113.2", "203.0.113.3", "203.0.113.4"} {
		c, err := l.Accept()
		require.NoError(t, err)
		require.Equal(t, host, c.(*Conn).Host)
		switch host {
		case "203.0.113.2":
			said, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, "gone", string(said))
		case "203.0.113.3":
			half = c
		}
		defer c.Close()
	}
	// The program ends when it has the answer, and its connections with it.
	_, err = half.Write([]byte("answer"))
	require.NoError(t, err)
	line, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "answer\n", line)
	require.NoError(t, cmd.Wait())
}

// TestThreads checks that only what Fork starts has the filter: this process connects freely, on
// all its threads.
func TestThreads(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	const filtered = `print(open("/proc/self/status").read().split("Seccomp:")[1].split()[0])`
	require.Equal(t, "2", o.run(t, filtered))
	for range 100 {
		c, err := net.DialTimeout("tcp", server.Addr().String(), 10*time.Second)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	// The descriptor on which the kernel asks is not the programs'.
	require.NotContains(t, o.run(t, `
for f in os.listdir("/proc/self/fd"):
    if os.path.exists("/proc/self/fd/" + f): print(os.readlink("/proc/self/fd/" + f))`), "seccomp")
}

// BenchmarkConnect is a connect to the outside and one to the loopback, beside one without the
// filter.
func BenchmarkConnect(b *testing.B) {
	o := newOutside(b)
	o.tell()
	for _, to := range []string{"203.0.113.1", "127.0.0.1"} {
		b.Run(to, func(b *testing.B) {
			program := fmt.Sprintf(`
l = socket(); l.bind(("127.0.0.1", 0)); l.listen(5000)
to = (%q, 80 if %[1]q != "127.0.0.1" else l.getsockname()[1])
t = time.perf_counter()
for i in range(%d):
    s = socket(); s.connect(to)
    if to[1] != 80: l.accept()[0].close()
    s.close()
print((time.perf_counter() - t) / %[2]d * 1e6)`, to, b.N)
			b.Log(o.run(b, program), "µs")
			cmd := exec.Command("python3", "-ISc", begin+program)
			if to == "127.0.0.1" {
				out, err := cmd.CombinedOutput()
				require.NoError(b, err, string(out))
				b.Log(strings.TrimSpace(string(out)), "µs without the filter")
			}
		})
	}
}
