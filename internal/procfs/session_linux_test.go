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
	"github.com/sandshell/sandshell/internal/shellquote"
)

// A session is a shell on a terminal. It reads its commands from a pipe, as the engine's shell
// does.
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
	go func() { // a program would block in writing to a terminal that nobody reads
		b, _ := io.ReadAll(master)
		output <- b
	}()
	t.Cleanup(func() {
		pids := append(pidsWithOpen(s.tty), s.pid)
		for _, p := range Tree(pids...) { // including those on the terminals of relays
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

// pidsWithOpen returns the other processes that have this file open. A file of the same name in a
// container does not count.
func pidsWithOpen(path string) (pids []int) {
	file, err := os.Stat(path)
	if err != nil {
		return nil
	}
	for _, pid := range numericNames("/proc") {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		for _, fd := range fileNames(dir) {
			if open, err := os.Stat(filepath.Join(dir, fd)); err == nil &&
				os.SameFile(open, file) && pid != os.Getpid() {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

func fileNames(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (s *session) run(command string) {
	s.t.Helper()
	_, err := fmt.Fprintf(s.commands, "eval %s <>%s\n", shellquote.Quote(command), s.tty)
	require.NoError(s.t, err)
}

const patience = 30 * time.Second

// until calls Look until ok returns true.
func (s *session) until(ok func(proc.Look) bool) (l proc.Look) {
	s.t.Helper()
	begin := time.Now()
	for n := 0; ; n++ {
		if l = Look(s.pid); ok(l) {
			return l
		}
		if time.Since(begin) > patience {
			require.FailNow(s.t, "no look was ok", "%+v\n%v", l, s.describe())
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

// idle waits until the shell is blocked in reading its pipe.
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
