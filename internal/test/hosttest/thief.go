package hosttest

import (
	"strings"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// thief is a program that stops a shell, takes its next command, and answers in its place.
const thief = `
import ctypes, os, re, signal, sys, time
shell = int(sys.argv[1])
tty = os.open(os.readlink("/proc/%d/fd/1" % shell), os.O_WRONLY | os.O_NOCTTY)
pipe = -1
for name in ("0", "10", "1001"):
    try:
        if os.readlink("/proc/%d/fd/%s" % (shell, name)).startswith(("pipe:", "socket:")):
            pipe = os.open("/proc/%d/fd/%s" % (shell, name), os.O_RDONLY | os.O_NONBLOCK)
    except OSError as e:
        print(name, e.strerror)
print("ready", flush=True)
while not os.path.exists(sys.argv[0] + ".go"): time.sleep(.001)
try:
    os.kill(shell, signal.SIGSTOP)
    while open("/proc/%d/stat" % shell).read().rsplit(")")[-1].split()[0] not in "TZ":
        time.sleep(.001)
    if sys.argv[2] != "open":
        pipe = ctypes.CDLL(None).syscall(438, os.pidfd_open(shell), 0, 0) # pidfd_getfd
        if pipe >= 0: os.set_blocking(pipe, False)
except OSError: # it was still printing, and has been killed for the stop
    pipe = -2
print("stopped", pipe, flush=True)
got, begin = b"", time.time()
while pipe >= 0 and time.time() < begin + 5:
    try: got += os.read(pipe, 1 << 16)
    except BlockingIOError: time.sleep(.001)
    c = re.findall(rb"\\033\]133;C;(\d+);([0-9a-f]{32});", got)
    d = re.findall(rb"\\033\]133;D;(\d+);([0-9a-f]{32});", got)
    if c and d:
        if sys.argv[2] == "continues": os.kill(shell, signal.SIGCONT)
        os.write(tty, b"\033]133;C;%s;%s;\007all tests passed\n\033]133;D;%s;%s;0;b0;/forged;%s\007" %
            (*c[-1], *d[-1], d[-1][1]))
        print("forged", flush=True)
        break
`

// Thief runs a program of the same user that tries to take the next command of a session and to
// forge its answer. how is the means: "open" (/proc/PID/fd), "pidfd" (pidfd_getfd, for programs
// that may trace) or "continues" (the same, after which the shell goes on). Thief checks that the
// program can open nothing. If it can take the command in another way, its answer must not become a
// result. The box needs python3.
func Thief(t *testing.T, box sandbox.Sandbox, how string) {
	for range 20 {
		switch said := steal(t, box, how); {
		case strings.Contains(said, "stopped -1"):
			require.Contains(t, said, "No such device or address")
			return
		case strings.Contains(said, "forged"):
			require.NotEqual(t, "open", how, said)
			return
		}
	}
	t.Error("the shell was always replaced before the thief had a command")
}

// steal returns the output of the thief.
func steal(t *testing.T, box sandbox.Sandbox, how string) string {
	ctx := t.Context()
	s, err := box.Open(ctx)
	require.NoError(t, err)
	defer s.Close()
	f := box.Files()
	require.NoError(t, f.WriteFile(ctx, "thief", []byte(thief), 0o600))
	_, err = s.Execute(ctx, "rm -f thief.*; (setsid python3 thief $$ "+how+
		" >thief.out 2>&1 </dev/null &)\n"+
		"until grep -q ready thief.out; do sleep 0.01; done")
	require.NoError(t, err)
	said := func() string {
		out, err := f.ReadFile(ctx, "thief.out", 0)
		require.NoError(t, err)
		return string(out)
	}
	require.NoError(t, f.WriteFile(ctx, "thief.go", nil, 0o600))
	WaitFor(t, "the thief to stop the shell", func() bool {
		return strings.Contains(said(), "stopped")
	})
	r, err := s.Execute(ctx, "echo real; (exit 6)")
	require.NoError(t, err)
	require.True(t, r.Restarted, "%+v %s", r, said())
	require.NotEqual(t, "/forged", r.Cwd)
	if r.ExitCode != 137 { // the status of a shell that was killed after the command was taken
		require.Equal(t, 6, r.ExitCode)
		require.Equal(t, "real\n", r.Output)
	}
	return said()
}
