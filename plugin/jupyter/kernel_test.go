package jupyter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/stretchr/testify/require"
)

// requireDead requires err to say that the kernel has died, and returns how.
func requireDead(t *testing.T, err error) *jupyter.DeadError {
	t.Helper()
	require.ErrorIs(t, err, jupyter.ErrDead)
	var dead *jupyter.DeadError
	require.ErrorAs(t, err, &dead)
	return dead
}

// slowExit ends a kernel as slowly as an orderly exit may: its connections have ended, but the
// process is there and listens, and answers nothing.
const slowExit = `
import ctypes, os, socket, sys
connections = []
for fd in os.listdir("/proc/self/fd"):
    try:
        s = socket.socket(fileno=os.dup(int(fd)))
        if s.family == socket.AF_UNIX and not s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            connections.append(s)
    except OSError:
        pass
sys.setswitchinterval(1000)
c = ctypes.PyDLL(None) # whose calls let no other thread run
for s in connections:
    c.shutdown(s.fileno(), socket.SHUT_RDWR)
c.usleep(500000)
os._exit(0)`

func testDeath(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	// Output right before the death may never leave the kernel. Output before a question has
	// arrived when the question is asked.
	answer := jupyter.Input(func(context.Context, string, bool) (string, error) { return "", nil })
	for code, status := range map[string]int{
		"os._exit(3)":                          3,
		"os.kill(os.getpid(), signal.SIGKILL)": 137,
		"os.kill(os.getpid(), signal.SIGSEGV)": 139,
	} {
		began := time.Now()
		r, err := c.Run(limit(t), "import os, signal\nprint('last words'); input()\n"+code, answer)
		dead := requireDead(t, err)
		require.Equal(t, status, dead.ExitCode)
		require.False(t, dead.OutOfMemory)
		require.False(t, dead.Replaced)
		require.Equal(t, kernel, dead.Kernel)
		require.Equal(t, "last words\n", r.Stdout)
		require.Less(t, time.Since(began), testenv.Limit)
		_, err = c.Run(limit(t), "1")
		requireDead(t, err)
		_, err = c.Complete(limit(t), "1", 1)
		requireDead(t, err)
		require.NoError(t, c.Restart(limit(t)))
		require.Equal(t, 1, run(t, c, "1").ExecutionCount)
	}
	_, err := c.Run(limit(t), "exit()")
	require.Equal(t, 0, requireDead(t, err).ExitCode)
	c = connect(t, b, kernel)
	require.Equal(t, 1, run(t, c, "1").ExecutionCount, "Connect starts a fresh one")
	_, err = c.Run(limit(t), slowExit)
	require.Equal(t, 0, requireDead(t, err).ExitCode)
}

func testRestart(t *testing.T, b boxtest.Box, kernel string) {
	c, other := connect(t, b, kernel), connect(t, b, kernel)
	run(t, c, "x = 1; import subprocess; child = subprocess.Popen(['sleep', '1000'])")
	child := run(t, c, "child.pid").Text
	var wait sync.WaitGroup
	_, err := other.Run(limit(t), "print('started', flush=True)\nwhile True: pass",
		when("started", func() {
			wait.Go(func() { require.NoError(t, c.Restart(limit(t))) })
		}))
	require.True(t, requireDead(t, err).Replaced)
	wait.Wait()
	r, err := c.Run(limit(t), "x")
	require.NoError(t, err)
	require.Equal(t, "NameError", r.Error.Name)
	// The processes of the cell are being killed.
	execute(t, b, "while kill -0 "+child+" 2>/dev/null; do sleep 0.05; done")
	_, err = other.Run(limit(t), "1")
	requireDead(t, err)
	require.NoError(t, c.Stop(limit(t)))
	require.NoError(t, c.Stop(limit(t)))
	_, err = c.Run(limit(t), "1")
	require.True(t, requireDead(t, err).Replaced)
	require.NoError(t, c.Restart(limit(t)))
	require.Equal(t, "1", run(t, c, "1").Text)
}

// testExit runs cells that end the kernel in Python's way. The Run of that cell reports the death.
func testExit(t *testing.T, b boxtest.Box, kernel string) {
	c, other := connect(t, b, kernel), connect(t, b, kernel)
	for _, code := range []string{
		"exit()",
		"quit()",
		"import threading, time; threading.Thread(target=lambda: time.sleep(1000)).start(); exit()",
	} {
		r, err := c.Run(limit(t), "print('last words')\n"+code)
		require.Equal(t, "last words\n", r.Stdout)
		dead := requireDead(t, err)
		require.True(t, dead.Exited)
		require.Contains(t, dead.Error(), "a cell has ended it, by exit or quit. Restart starts "+
			"a fresh one")
		_, err = c.Run(limit(t), "1")
		requireDead(t, err)
		_, err = other.Run(limit(t), "1")
		requireDead(t, err)
		require.NoError(t, c.Restart(limit(t)))
		require.Equal(t, "1", run(t, c, "1").Text)
		require.NoError(t, other.Restart(limit(t)))
		require.NoError(t, c.Restart(limit(t)))
	}
	run(t, c, "x = 1; exit(True)") // keeps the kernel
	require.Equal(t, "1", run(t, c, "x").Text)
}

func testKernels(t *testing.T, b boxtest.Box, kernel string) {
	one, again, two := connect(t, b, kernel), connect(t, b, kernel),
		connectTo(t, b, jupyter.Config{Kernel: kernel + ".2", Dir: "/"})
	run(t, one, "x = 'one'")
	run(t, two, "x = 'two'")
	require.Equal(t, "'one'", run(t, again, "x").Text)
	require.Equal(t, "('two', '/')", run(t, two, "import os; x, os.getcwd()").Text)
	require.NoError(t, one.Close())
	require.NoError(t, one.Close())
	_, err := one.Run(limit(t), "1")
	require.ErrorIs(t, err, sandbox.ErrClosed)
	require.Equal(t, "'one'", run(t, connect(t, b, kernel), "x").Text, "it outlives its clients")
}

func testGoroutines(t *testing.T, b boxtest.Box, kernel string) {
	clients := []*jupyter.Client{connect(t, b, kernel), connect(t, b, kernel)}
	run(t, clients[0], "n = 0")
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			for i := range 15 {
				word := fmt.Sprintf("%d-%d", g, i)
				r, err := clients[g%2].Run(limit(t), "n += 1; print('"+word+
					"')\nif n % 7 == 0: 1/0\n'"+word+"'")
				if err != nil || r.Stdout != word+"\n" || r.Error == nil && r.Text != "'"+word+"'" {
					t.Errorf("%s: %+v, %v", word, r, err)
				}
			}
		})
	}
	wait.Wait()
	require.Equal(t, "60", run(t, clients[1], "n").Text)
}

func testClose(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	closed := make(chan error, 1)
	_, err := c.Run(limit(t), "print('started', flush=True)\nimport time; time.sleep(1); x = 1",
		when("started", func() {
			go func() { closed <- c.Close() }()
		}))
	require.ErrorIs(t, err, sandbox.ErrClosed)
	require.NoError(t, <-closed)
	require.Equal(t, "1", run(t, connect(t, b, kernel), "x").Text, "the cell has gone on")
}

func TestStuck(t *testing.T) {
	testenv.NeedsAll(t, "kernels are slow to start: the default has some in TestBoxes")
	t.Parallel()
	b := local(t)
	c := connect(t, b, jupyter.DefaultKernel)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Run(ctx, `
while True:
    try:
        print('started', flush=True)
        while True: pass
    except KeyboardInterrupt: pass`, when("started", cancel))
	require.ErrorIs(t, err, jupyter.ErrStuck)
	require.ErrorIs(t, err, context.Canceled)

	set := tools.Python(b, tools.Config{}) // uses the same kernel
	defer set.Close()
	reply, err := set.Call(t.Context(), "python", json.RawMessage(
		`{"code": "print('ok')", "seconds": 0.2}`))
	require.NoError(t, err)
	require.Equal(t, "[not run: the kernel has run another cell for 200ms; if that cell is "+
		"stuck, use `python_restart`]\n", reply)
	reply, err = set.Call(t.Context(), "python_restart", nil)
	require.NoError(t, err)
	require.Equal(t, "[started a fresh kernel: define again what you need]\n", reply)
	reply, err = set.Call(t.Context(), "python", json.RawMessage(`{"seconds": 0.2, "code":
		"import time\nwhile True:\n  try: time.sleep(9)\n  except KeyboardInterrupt: print('no')"}`))
	require.NoError(t, err)
	require.Contains(t, reply, "no\n[still running: an interrupt after 200ms did not help; ")
	require.NoError(t, c.Restart(limit(t)))
	require.Equal(t, "1", run(t, c, "1").Text)
}

// In a LocalBox, the plugin leaves nothing on the user's machine.
func TestNothingOutside(t *testing.T) {
	testenv.NeedsAll(t, "kernels are slow to start: the default has some in TestBoxes")
	t.Parallel()
	needPython(t, "ipykernel", "jupyter_client", "matplotlib")
	home, dir := t.TempDir(), t.TempDir()
	b, err := localbox.New(t.Context(), localbox.Config{Dir: dir, Env: []string{"HOME=" + home}})
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.InitPlugins(t.Context(), jupyter.Plugin()))
	plugins, err := b.PluginDir()
	require.NoError(t, err)
	c := connect(t, b, jupyter.DefaultKernel)
	run(t, c, "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\n%history")
	_, err = c.Complete(limit(t), "plt.pl", 6)
	require.NoError(t, err)
	pid := run(t, c, "import os; os.getpid()").Text
	execute(t, b, "echo 1 | execute_cli")
	require.NoError(t, b.Close())
	_, err = c.Run(limit(t), "1")
	require.ErrorIs(t, err, sandbox.ErrClosed)
	for _, d := range []string{home, dir} {
		entries, err := os.ReadDir(d)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	_, err = os.Stat(plugins)
	require.ErrorIs(t, err, os.ErrNotExist)
	if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil {
		// It has ended. Init may not have reaped it yet.
		require.Regexp(t, `\) [ZX] `, string(stat), "the kernel still runs")
	}
}

// Only the kernel's user can enter its directory and read its key. No process shows the key in its
// arguments or environment.
func TestSecret(t *testing.T) {
	testenv.NeedsAll(t, "kernels are slow to start: the default has some in TestBoxes")
	t.Parallel()
	b := local(t)
	c := connect(t, b, "secret")
	file := strings.Trim(run(t, c, "import sys; sys.argv[sys.argv.index('-f') + 1]").Text, "'")
	for path, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
	require.Equal(t, "[]", run(t, c, `
import json, glob
key = json.load(open(sys.argv[sys.argv.index('-f') + 1]))['key'].encode()
def text(name):
    try: return open(name, 'rb').read()
    except OSError: return b''
[f for f in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ') if key in text(f)]`).Text)
}

// A directory may have a name that is too long for Unix sockets.
func TestLongDirectory(t *testing.T) {
	testenv.NeedsAll(t, "kernels are slow to start: the default has some in TestBoxes")
	needPython(t, "ipykernel", "jupyter_client")
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Setenv("TMPDIR", dir)
	b := boxtest.Local(t, jupyter.Plugin())
	c := connect(t, b, "long")
	before := run(t, c, "import glob; glob.glob('/tmp/sandshell-*/s-1')").Text
	require.NotEqual(t, "[]", before)
	require.NoError(t, c.Stop(limit(t)))
	left, err := filepath.Glob("/tmp/sandshell-*/s-1")
	require.NoError(t, err)
	require.NotContains(t, left, strings.Trim(before, "[']"))
}

func TestMisuse(t *testing.T) {
	testenv.NeedsAll(t, "kernels are slow to start: the default has some in TestBoxes")
	t.Parallel()
	b := boxtest.Local(t)
	_, err := jupyter.Connect(t.Context(), b, jupyter.Config{})
	require.ErrorIs(t, err, jupyter.ErrNotInstalled)
	require.ErrorContains(t, err, "InitPlugins(ctx, jupyter.Plugin()) first")
	_, err = jupyter.Connect(t.Context(), nil, jupyter.Config{})
	require.EqualError(t, err, "jupyter: Connect: the sandbox is nil: make a box first")
	for _, name := range []string{"../x", "-x", "a b", strings.Repeat("x", 65)} {
		_, err = jupyter.Connect(t.Context(), b, jupyter.Config{Kernel: name})
		require.ErrorContains(t, err, "jupyter: Config.Kernel: ", name)
		require.ErrorContains(t, err, "a name has up to 64 letters", name)
	}
	require.NoError(t, b.Close())
	_, err = jupyter.Connect(t.Context(), b, jupyter.Config{})
	require.ErrorIs(t, err, sandbox.ErrClosed)

	installed := local(t)
	_, err = jupyter.Connect(t.Context(), installed, jupyter.Config{Dir: "/nowhere"})
	require.ErrorContains(t, err, "there is no directory /nowhere to start the kernel in")
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	b := container(t, sshbox.Config{Memory: 300 << 20}, jupyter.Plugin(), matplotlib())
	c := connect(t, b, "memory")
	_, err := c.Run(limit(t), "hog = b'x' * (1 << 30)")
	dead := requireDead(t, err)
	require.True(t, dead.OutOfMemory)
	require.ErrorContains(t, err, "killed because the memory was full")
	require.NoError(t, c.Restart(limit(t)))
	require.Equal(t, "1", run(t, c, "1").Text)
}

// When the process that starts a kernel is killed, at different moments, others use that kernel.
func TestStarterKilled(t *testing.T) {
	testenv.NeedsAll(t, "kernels are slow to start: the default has some in TestBoxes")
	t.Parallel()
	b := local(t)
	for _, pause := range []string{"0.03", "0.06", "0.1", "0.2", "0.4"} {
		execute(t, b, "echo 1 | timeout -s KILL "+pause+" execute_cli")
		require.Equal(t, "2\n", execute(t, b, "echo 2 | execute_cli").Output)
		require.Zero(t, execute(t, b, "execute_cli --stop").ExitCode)
		execute(t, b, "echo 1 | timeout -s KILL "+pause+" execute_cli")
		require.Zero(t, execute(t, b, "execute_cli --restart").ExitCode)
		require.Zero(t, execute(t, b, "execute_cli --stop").ExitCode)
	}
}
