package procfs

import (
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// withoutPtrace is the environment variable that is set if this process has no CAP_SYS_PTRACE.
const withoutPtrace = "PROCFS_TEST_WITHOUT_PTRACE"

// runAsContainerRoot runs the test in another process, with the capabilities of root in a
// container. options are setpriv's.
func runAsContainerRoot(t *testing.T, options ...string) {
	t.Helper()
	need(t, "setpriv")
	args := append(options, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd := exec.Command("setpriv", args...)
	cmd.Env = append(os.Environ(), withoutPtrace+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS")
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("for root only")
	}
}

func dumpable(t *testing.T) int {
	n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	require.NoError(t, err)
	return n
}

// root without the right to trace other users' processes still sees what they wait for.
func TestAnotherUser(t *testing.T) {
	needRoot(t)
	need(t, "su", "setpriv")
	if os.Getenv(withoutPtrace) == "" {
		runAsContainerRoot(t,
			"--bounding-set=-sys_ptrace,-sys_admin,-dac_override,-dac_read_search",
			"--inh-caps=-all")
	}
	before := dumpable(t)
	for _, c := range []waitCase{
		{name: "su", command: "su nobody -s /bin/sh -c 'read x; :'"},
		{name: "setpriv", command: "setpriv --reuid 65534 --regid 65534 --clear-groups bash -c " +
			"'read x; :'", waits: "bash"},
		{name: "select", command: "setpriv --reuid 65534 --regid 65534 --clear-groups " +
			py("import select; select.select([0],[],[])")},
	} {
		t.Run(c.name, func(t *testing.T) { startSession(t).runAndAwait(c) })
	}
	t.Run("program", func(t *testing.T) {
		s := startSession(t)
		s.run("cd /; export A=b; exec setpriv --reuid 65534 --regid 65534 --clear-groups cat")
		s.until(func(l proc.Look) bool { return len(l.Waits) == 1 && l.Waits[0].Name == "cat" })
		dir, env := Program(s.pid)
		require.Equal(t, "/", dir)
		require.Contains(t, env, "A=b")
	})
	require.Equal(t, before, dumpable(t))
	require.Zero(t, unix.Access("/root", unix.R_OK))
	for _, tid := range numericNames("/proc/self/task") { // every thread has root's ids again
		ids, ok := newReader().field("/proc/self/task/"+strconv.Itoa(tid)+"/status", "Uid:")
		require.True(t, ok)
		require.Equal(t, "0\t0\t0\t0", ids)
	}
}

// If nothing can be learned about another user's process, Hidden is set. It is not set for a
// process that is not looked at.
func TestHidden(t *testing.T) {
	needRoot(t)
	if os.Getenv(withoutPtrace) == "" {
		runAsContainerRoot(t,
			"--bounding-set=-sys_ptrace,-sys_admin,-dac_override,-dac_read_search,-setpcap",
			"--inh-caps=-all")
		return
	}
	s := startSession(t)
	require.False(t, s.idle().Hidden)
	// Its saved id is root's, so the kernel shows it to no user id.
	s.run(py("import os; os.setresuid(65534,65534,0); os.read(0,1)"))
	l := s.until(func(l proc.Look) bool { return l.Hidden && !l.Runs })
	require.Empty(t, l.Waits)
	require.Positive(t, l.Total)
}

// The kernel hides sudo from root without the right to trace. sudo is taken for a relay
// nevertheless: the processes on the terminal behind it are found.
func TestHiddenRelay(t *testing.T) {
	needRoot(t)
	need(t, "sudo", "bash")
	if os.Getenv(withoutPtrace) == "" {
		runAsContainerRoot(t,
			"--bounding-set=-sys_ptrace,-sys_admin", "--inh-caps=-all")
		return
	}
	inRelay := func(l proc.Look) bool { return l.Modes.Raw && !l.Runs }
	for _, c := range []waitCase{
		{name: "line", command: "sudo -u nobody bash -c 'read x; :'", waits: "bash", modes: line,
			notAlone: true},
		{name: "secret", command: "sudo -u nobody bash -c 'read -s x; :'", waits: "bash",
			modes: secret, notAlone: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startSession(t)
			s.run(c.command)
			l := s.until(func(l proc.Look) bool {
				return inRelay(l) && len(l.Waits) == 1 && l.Waits[0].Modes == c.modes
			})
			if l.Waits[0].Alone {
				t.Skip("sudo shows itself here")
			}
			require.Equal(t, c.waits, l.Waits[0].Name)
			require.False(t, l.Hidden)
		})
	}
	t.Run("nobody", func(t *testing.T) {
		s := startSession(t)
		s.run("sudo -u nobody sleep 600")
		s.until(func(l proc.Look) bool { return inRelay(l) && hasSleepingSleep(s.pid) })
		for range 20 {
			l := Look(s.pid)
			require.Empty(t, l.Waits)
			require.False(t, l.Hidden)
		}
	})
	t.Run("hidden behind it", func(t *testing.T) {
		s := startSession(t)
		s.run("sudo " + py("import os,termios; t=termios.tcgetattr(0); t[3]&=~termios.ECHO; "+
			"termios.tcsetattr(0,0,t); os.setresuid(65534,65534,0); os.read(0,1)"))
		l := s.until(func(l proc.Look) bool {
			return inRelay(l) && l.Hidden && l.HiddenModes.NoEcho && !l.HiddenModes.Raw
		})
		require.Empty(t, l.Waits)
		require.True(t, l.HiddenModes.Known)
	})
}

// hasSleepingSleep reports whether the process has a descendant named sleep that sleeps.
func hasSleepingSleep(pid int) bool {
	return slices.ContainsFunc(Tree(pid), func(p proc.Process) bool {
		return p.Name == "sleep" && p.State == "S"
	})
}

// A user without privileges learns only that root's shell and its program hide what they wait for.
func TestPlainUser(t *testing.T) {
	needRoot(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	require.NoError(t, err)
	need(t, "sudo")
	s := startSession(t)
	// The shell and its program are root's. The user nobody looks at them.
	s.runAndAwait(waitCase{command: "cat", waits: "cat"})
	before := unix.Geteuid()
	require.NoError(t, syscall.Seteuid(uid))
	defer func() {
		require.NoError(t, syscall.Seteuid(before))
		unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	}()
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
		l := Look(s.pid)
		require.True(t, l.Hidden)
		require.Empty(t, l.Waits)
		require.Empty(t, l.Reads)
		require.False(t, l.Gone)
		require.Positive(t, l.Turns)
		require.True(t, l.Foreground == s.pid || l.TTY != 0)
	}
}
