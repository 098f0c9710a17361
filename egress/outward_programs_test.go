package egress_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// goClient makes a static program that prints what a URL has.
func goClient(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(main, []byte(`package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); os.Exit(1) }
	io.Copy(os.Stdout, r.Body)
}
`), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "client"), main)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GO111MODULE=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(dir, "client")
}

// TestOutwardPrograms checks real programs that have no proxy variable, as root and as a user who
// can do nothing.
func TestOutwardPrograms(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "TestOutward has two of the programs")
	client := goClient(t)
	const root = "root"
	for name, c := range map[string]sshbox.Config{
		root:         {},
		"restricted": {User: "1000", ReadOnlyRoot: true, CapDrop: []string{"ALL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, _, events := outwardBox(t, c)
			execute(t, box, without)
			dir := "/tmp"
			require.NoError(t, box.CopyTo(t.Context(), client, dir+"/client"))
			hello := "hello from a.example.com"
			for _, program := range []struct{ name, command, want string }{
				{"python3", fetch, hello},
				{"client", dir + "/client https://a.example.com/hello", hello},
				{"git-remote-http", // as much of it as the kernel keeps
					"git ls-remote https://a.example.com/repo.git refs/heads/main",
					strings.Repeat("a1", 20) + "\trefs/heads/main"},
				{"openssl", `printf 'GET /hello HTTP/1.1\r\nHost: a.example.com\r\n` +
					`Connection: close\r\n\r\n' | openssl s_client -quiet ` +
					`-verify_return_error -connect a.example.com:443 2>/dev/null | tail -n 1`, hello},
				{"bash", `exec 3<>/dev/tcp/db.example.com/5432; read -u 3 a; echo $a; exec 3>&-`,
					"ready"},
				{"nc", "nc -N db.example.com 5432 </dev/null", "ready"},
				{"python3", "env -i SSL_CERT_FILE=$SSL_CERT_FILE /usr/bin/" + fetch, hello},
				{"client", "setsid -w env -i SSL_CERT_FILE=$SSL_CERT_FILE " + dir +
					"/client https://a.example.com/hello", hello},
				{"python3", "(" + fetch + ") | cat", hello},
			} {
				n := events.count()
				require.Equal(t, program.want, execute(t, box, program.command), program.name)
				e := events.after(t, n)
				require.Equal(t, program.name, e.Program)
				require.Equal(t, "outward", e.Via)
				require.Equal(t, "main", e.Session)
			}
			if name == root {
				other := execute(t, box, "setpriv --reuid 1000 --regid 1000 --clear-groups "+
					fetch)
				require.Equal(t, hello, other)
			}
			if name == root && !keepsNameServers(t) {
				// Its memory is its own: the name alone leads out.
				n := events.count()
				require.Equal(t, hello, execute(t, box, `python3 -c 'import os; os.setuid(1000)
import urllib.request as u
print(u.urlopen("https://a.example.com/hello").read().decode())'`))
				e := events.after(t, n)
				require.Zero(t, e.PID)
				require.Equal(t, "a.example.com", e.Host)
			}
			n := events.count()
			job, err := box.Background(t.Context(), without+fetch)
			require.NoError(t, err)
			res, err := job.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, hello, strings.TrimSpace(res.Output))
			e := events.after(t, n)
			require.Equal(t, job.ID(), e.Session)
		})
	}
}

// TestOutwardSession checks that the filter changes nothing for sessions and debuggers.
func TestOutwardSession(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "the conformance suite has most of it")
	box, _, _ := outwardBox(t, sshbox.Config{})
	ctx := t.Context()
	execute(t, box, without)
	res, err := box.Execute(ctx, `read -p 'name? ' n; exec 3<>/dev/tcp/$n/5432; cat <&3`)
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, res.State)
	require.Equal(t, "name? ", res.Output)
	_, err = box.Input(ctx, "db.example.com\n", sandbox.Until(regexp.MustCompile("ready")))
	require.NoError(t, err)
	_, err = box.Wait(ctx, sandbox.Timeout(100*time.Millisecond))
	require.ErrorIs(t, err, sandbox.ErrTimeout)
	require.Equal(t, "alive", execute(t, box, "echo alive"))

	connect := `exec 3<>/dev/tcp/db.example.com/5432; read -u 3 a; echo got $a`
	require.Contains(t, execute(t, box, "gdb -batch -ex run --args bash -c '"+connect+"' 2>&1"),
		"got ready")
	res, err = box.Execute(ctx, "timeout -s INT 0.3 cat </dev/tcp/db.example.com/5432")
	require.NoError(t, err)
	require.Equal(t, 124, res.ExitCode)
	if out := execute(t, box, "command -v strace || echo none"); out != "none" {
		require.Contains(t, execute(t, box, "strace -f -e connect bash -c '"+connect+"' 2>&1"),
			"got ready")
	}
}

// TestOutwardFlood checks that the connections of programs that connect and die are in nobody's
// way, that idle ones are not, and that boxd keeps nothing of them. BenchmarkOutward says how long
// the next connection takes.
func TestOutwardFlood(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it takes a processor for seconds")
	box, _, _ := outwardBox(t, sshbox.Config{})
	execute(t, box, without)
	next := func() {
		t.Helper()
		require.Equal(t, "ready", execute(t, box, `exec 3<>/dev/tcp/db.example.com/5432; `+
			`read -u 3 x; exec 3>&-; echo $x`))
	}
	// nothingOpen waits until nobody has a connection: none is in the states ESTABLISHED and
	// CLOSE_WAIT. Those in others are the kernel's alone.
	nothingOpen := func() {
		t.Helper()
		var open string
		for end := time.Now().Add(testenv.Limit); time.Now().Before(end); {
			open = execute(t, box, `awk '$4 ~ /01|08/' /proc/net/tcp`)
			if open == "" {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		require.Empty(t, open)
	}
	next()
	nothingOpen()
	killed, closed := 8, 100
	if testenv.Full() {
		killed, closed = 40, 500
	}
	execute(t, box, `for i in {1..5}; do python3 -c '
import os, socket
for i in range(`+strconv.Itoa(killed)+`):
    if os.fork() == 0:
        all = [socket.create_connection(("192.0.2.7", 5432)) for i in range(10)]
        os.kill(os.getpid(), 9)
    os.wait()' & done; wait`)
	next()
	execute(t, box, `(for ((i = 0; i < `+strconv.Itoa(closed)+`; i++)); do `+
		`exec 3<>/dev/tcp/192.0.2.7/5432; exec 3>&-; done)`)
	next()
	nothingOpen()
	// More than the gate takes at once.
	idle, err := box.Open(t.Context())
	require.NoError(t, err)
	res, err := idle.Execute(t.Context(), `ulimit -n 2000; python3 -c '
import socket
all = [socket.create_connection(("a.example.com", 443)) for i in range(600)]
input("idle? ")' || true`)
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, res.State, res.Output)
	next()
	_, err = idle.Input(t.Context(), "\n")
	require.NoError(t, err)
	nothingOpen()
	// The kernel makes the table larger when it is full, and never smaller.
	slots, err := strconv.Atoi(execute(t, box, `awk '/^FDSize/ {print $2}' /proc/1/status`))
	require.NoError(t, err)
	require.LessOrEqual(t, slots, 1024, "boxd's descriptors")
}

// TestOutwardAttacks checks what programs of the box might try.
func TestOutwardAttacks(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "TestConnect and TestTable have the parts")
	box, exit, events := outwardBox(t, sshbox.Config{})
	execute(t, box, without)
	// More names than boxd keeps: those in use keep their addresses.
	require.Equal(t, "9000", execute(t, box, `python3 -c '
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("127.0.0.1", 53))
seen = set()
for i in range(9000):
    name = b"%d" % i
    s.send(struct.pack("!6HB", i, 256, 1, 0, 0, 0, len(name)) + name + b"\7example\3com\0" +
        struct.pack("!2H", 1, 1))
    answer = s.recv(500); assert answer[:2] == struct.pack("!H", i); seen.add(answer[-4:])
print(len(seen))'`))
	require.Equal(t, "hello from a.example.com", execute(t, box, fetch))
	// boxd's descriptors, its listener and its numbers.
	require.NotContains(t, execute(t, box, "ls -l /proc/1/fd 2>&1 || true"), "->")
	require.Equal(t, "reset", execute(t, box, `python3 -c '
import socket, re
ports = [int(l.split()[1].split(":")[1], 16) for l in open("/proc/net/tcp") if l.split()[3] == "0A"]
said = set()
for port in ports:
    for host in "127.128.0.0", "127.200.1.1", "127.255.255.254":
        try:
            s = socket.create_connection((host, port)); said.add(s.recv(1) or "reset")
        except ConnectionResetError: said.add("reset")
        except ConnectionRefusedError: pass
print(*said)'`))
	// A name with escapes, and a host that is none.
	execute(t, box, `python3 -c '
import ctypes, socket
ctypes.CDLL(None).prctl(15, b"\x1b]0;x\x07\n", 0, 0, 0)
s = socket.create_connection(("db.example.com", 5432)); print(s.recv(10))'`)
	e := events.find(t, func(e egress.Event) bool { return e.Host == "db.example.com" })
	require.NotContains(t, e.Program, "\x1b")
	// TLS for another host than was connected to, and a request for one.
	require.NotContains(t, execute(t, box, `openssl s_client -connect a.example.com:443 `+
		`-servername evil.example.com </dev/null 2>&1 || true`), "BEGIN CERTIFICATE")
	require.Contains(t, execute(t, box, `printf 'GET /hello HTTP/1.1\r\nHost: b.example.com\r\n`+
		`Connection: close\r\n\r\n' | openssl s_client -quiet -connect a.example.com:443 `+
		`2>/dev/null`), "421 Misdirected Request")
	for _, to := range []string{"169.254.169.254/80", "127.0.0.1/3128", "evil.test/22",
		"10.0.0.1/5432"} {
		execute(t, box, `(exec 3<>/dev/tcp/`+to+`; printf 'GET / HTTP/1.1\r\nHost: x\r\n`+
			`Connection: close\r\n\r\n' >&3; cat <&3) || true`)
	}
	for _, e := range exit.Denied() {
		require.NotEmpty(t, e.Denied)
	}
}
