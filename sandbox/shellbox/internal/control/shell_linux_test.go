package control

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/internal/shellquote"
)

const nobody = 65534

// controlShells returns the shells of this machine with which control.sh is tested.
func controlShells(t testing.TB) (shells [][]string) {
	for _, sh := range [][]string{{"dash"}, {"bash"}, {"busybox", "ash"}, {"mksh"}} {
		if _, err := exec.LookPath(sh[0]); err == nil {
			shells = append(shells, sh)
		}
	}
	return shells
}

// openedAs returns how control.sh tells an open file from others.
func openedAs(t testing.TB, f *os.File) string {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()))
	require.NoError(t, err)
	if m := regexp.MustCompile(`mnt_id:\s*(\d+)\nino:\s*(\d+)\n`).FindSubmatch(info); m != nil {
		return string(m[1]) + ":" + string(m[2])
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())) // before Linux 5.14
	require.NoError(t, err)
	return name
}

// A pipedShell is an interactive shell on a terminal, which reads its commands from a pipe.
type pipedShell struct {
	pid      int
	commands *os.File
	keys     *os.File
	tty      string
	pipe     string
}

var sessionShells = map[string][]string{
	"bash": {"bash", "--norc", "--noprofile", "--noediting", "-i"},
	"dash": {"dash", "-i"},
	"ash":  {"busybox", "ash", "-o", "ignoreeof", "-i"},
}

func startPipedShell(t testing.TB, name string) *pipedShell { return startPipedShellAs(t, 0, name) }

// startPipedShellAs starts a shell. If uid is not 0, the shell runs as that user.
func startPipedShellAs(t testing.TB, uid uint32, name string) *pipedShell {
	t.Helper()
	args := sessionShells[name]
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skip("this machine has no " + args[0])
	}
	ptm, tty, err := pty.Open()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TERM=xterm", "PS1=", "HISTFILE=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	if uid != 0 {
		require.NoError(t, tty.Chown(int(uid), int(uid)))
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
		cmd.Dir = "/"
	}
	require.NoError(t, cmd.Start())
	pipe := openedAs(t, r)
	name = tty.Name()
	r.Close()
	tty.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(io.Discard, ptm)
	}()
	t.Cleanup(func() {
		procfs.Signal(pidsOf(procfs.Tree(cmd.Process.Pid)), proc.SIGKILL)
		w.Close()
		cmd.Wait()
		<-read
		ptm.Close()
	})
	return &pipedShell{cmd.Process.Pid, w, ptm, name, pipe}
}

// run makes the shell execute a command, as the engine does.
func (p *pipedShell) run(t testing.TB, command string) {
	t.Helper()
	_, err := fmt.Fprintf(p.commands, "\\eval %s <%s\n", shellquote.Quote(command), p.tty)
	require.NoError(t, err)
}

// awaitLook looks until wanted returns true for two looks in a row.
func awaitLook(t testing.TB, c *Processes, pid int, wanted func(*proc.Look) bool) proc.Look {
	t.Helper()
	var l proc.Look
	agreed := 0
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(5 * time.Millisecond) {
		l = must[proc.Look](t)(c.Look(t.Context(), pid))
		if agreed++; !wanted(&l) {
			agreed = 0
		}
		if agreed == 2 {
			return l
		}
	}
	t.Fatalf("not as wanted: %+v", l)
	return l
}

// neverWaits checks that no look finds a wait.
func neverWaits(t testing.TB, c *Processes, pid int) {
	t.Helper()
	for range 20 {
		l := must[proc.Look](t)(c.Look(t.Context(), pid))
		require.Empty(t, l.Waits)
		require.Empty(t, l.Reads)
		time.Sleep(2 * time.Millisecond)
	}
}

// interrupt sends interrupts until the shell reads its pipe again.
func interrupt(t testing.TB, c *Processes, p *pipedShell) {
	t.Helper()
	for range 200 {
		l := must[proc.Look](t)(c.Look(t.Context(), p.pid))
		if l.Reads == p.pipe {
			return
		}
		must[bool](t)(c.Interrupt(t.Context(), p.pid))
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the shell does not come back")
}
