package sshhost

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// withTMPDIR returns a line of sshd_config. It sets TMPDIR in each session, and then runs more
// commands.
func withTMPDIR(tmp, more string) string {
	return "ForceCommand TMPDIR=" + tmp + "; export TMPDIR; " + more +
		` eval "$SSH_ORIGINAL_COMMAND"`
}

// waitForNothingLeft waits until no FIFO and no feeder is left.
func waitForNothingLeft(t *testing.T, h *Host, tmp string) {
	t.Helper()
	h.endSpare()
	waitFor(t, "the directory to be empty", func() bool {
		names, err := filepath.Glob(tmp + "/.s*")
		return err == nil && len(names) == 0
	})
	waitFor(t, "the sessions to end", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range h.connections {
			if c.sessions > 0 || c.unreleased > 0 {
				return false
			}
		}
		return true
	})
	waitFor(t, "the processes to end", func() bool {
		return exec.Command("pgrep", "-f", tmp).Run() != nil
	})
}

func TestCommands(t *testing.T) {
	for name, c := range map[string]Config{"": {}, "OneSessionEach": {MaxSessions: 1}} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			h := hostOf(t, sshdtest.Start(t, withTMPDIR(tmp, "")), c)
			hosttest.Commands(t, h)
			waitForNothingLeft(t, h, tmp)
		})
	}
}

// TestCommandsLeaveNothing checks that when a command runs, the FIFO has no name, and the shell has
// no variable, trap or second descriptor that the script made.
func TestCommandsLeaveNothing(t *testing.T) {
	tmp := t.TempDir()
	h := hostOf(t, sshdtest.Start(t, withTMPDIR(tmp, "")), Config{})
	s := hosttest.StartShell(t, h)
	// Of the pipe of this very line, ls may see descriptors that the shell then closes.
	s.Say(t, "set | grep ^__; trap; "+
		"ls -l /proc/$$/fd 2>/dev/null | grep -c 'sandshell-.*(deleted)'; echo up\n")
	s.Shows(t, "up\n")
	require.Equal(t, "1\nup\n", s.Shown(), "variables, traps, or more descriptors of the FIFO "+
		"than one")
	names, err := filepath.Glob(tmp + "/.s*")
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestCommandsNoPlace(t *testing.T) {
	shell := shellbox.Program{Args: []string{"/bin/sh", "-i"},
		Terminal: &shellbox.Terminal{Rows: 24, Cols: 80, Commands: true}}
	t.Run("NoMkfifo", func(t *testing.T) {
		tmp := t.TempDir()
		h := hostOf(t, sshdtest.Start(t, withTMPDIR(tmp, "PATH=/none;")), Config{})
		_, err := h.Start(t.Context(), shell)
		require.ErrorContains(t, err, "make a FIFO: ")
		require.ErrorContains(t, err, "mkfifo")
		waitForNothingLeft(t, h, tmp)
	})
	t.Run("OtherPlace", func(t *testing.T) {
		h := hostOf(t, sshdtest.Start(t, withTMPDIR("/none", "")), Config{})
		s := hosttest.StartShell(t, h)
		s.Say(t, "echo up\n")
		s.Shows(t, "up\n")
	})
	t.Run("NoProgram", func(t *testing.T) {
		tmp := t.TempDir()
		h := hostOf(t, sshdtest.Start(t, withTMPDIR(tmp, "")), Config{})
		none := shell
		none.Args = []string{"no-such-program"}
		_, err := h.Start(t.Context(), none)
		require.ErrorIs(t, err, exec.ErrNotFound)
		waitForNothingLeft(t, h, tmp)
	})
	t.Run("NoFeeder", func(t *testing.T) {
		tmp := t.TempDir()
		const fail = `case $SSH_ORIGINAL_COMMAND in *"exec cat"*) ` +
			`echo "no cat here" >&2; exit 9;; esac;`
		h := hostOf(t, sshdtest.Start(t, withTMPDIR(tmp, fail)), Config{})
		_, err := h.Start(t.Context(), shell)
		require.ErrorContains(t, err, "status 9")
		require.ErrorContains(t, err, "no cat here")
		waitForNothingLeft(t, h, tmp)
	})
	t.Run("LateFeeder", func(t *testing.T) {
		tmp := t.TempDir()
		const wait = `case $SSH_ORIGINAL_COMMAND in *"exec cat"*) read -r x;; esac;`
		h := hostOf(t, sshdtest.Start(t, withTMPDIR(tmp, wait)), Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := h.Start(ctx, shell)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		waitForNothingLeft(t, h, tmp)
	})
}

// startShell starts a shell that has a feeder.
func startShell(t *testing.T, h *Host) *hosttest.Shell {
	s := hosttest.StartShell(t, h)
	s.Say(t, "echo up $((40+2))\n")
	s.Shows(t, "up 42\n")
	return s
}

// spareOf waits until the Host's next feeder is ready. It returns nil if there is none.
func spareOf(h *Host) *feeding {
	h.mu.Lock()
	f := h.spare.f
	h.mu.Unlock()
	if f != nil {
		<-f.done
	}
	return f
}

// From the second shell on, the next one's feeder is ready, and a Host that has closed has left
// nothing of it.
func TestSpare(t *testing.T) {
	tmp := t.TempDir()
	h := hostOf(t, sshdtest.Start(t, withTMPDIR(tmp, "")), Config{})
	first := startShell(t, h)
	require.Nil(t, spareOf(h))
	second := startShell(t, h)
	spare := spareOf(h)
	require.FileExists(t, spare.fifo)
	third := startShell(t, h)
	require.Same(t, spare.feeder, third.Process.(*process).feeder)
	require.NoFileExists(t, spare.fifo)
	for _, s := range []*hosttest.Shell{first, second, third} {
		require.NoError(t, s.Close())
	}
	require.True(t, spareOf(h).ready())
	require.NoError(t, h.Close())
	names, err := filepath.Glob(tmp + "/.s*")
	require.NoError(t, err)
	require.Empty(t, names)
}

// A shell starts although the feeder that was to be its own has ended, or its FIFO is gone.
func TestSpareFails(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *feeding){
		"Killed": func(t *testing.T, f *feeding) {
			hosttest.Execute(t, "pkill", "-KILL", "-f", "printf.*"+path.Base(f.fifo))
			<-f.feeder.ended
		},
		"Removed": func(t *testing.T, f *feeding) {
			require.NoError(t, os.Remove(f.fifo))
		},
		"AnotherUsers": func(t *testing.T, f *feeding) {
			if os.Getuid() != 0 {
				t.Skip("only root can make a FIFO of another user")
			}
			require.NoError(t, os.Remove(f.fifo))
			hosttest.Execute(t, "mkfifo", "-m", "666", f.fifo)
			require.NoError(t, os.Chown(f.fifo, 65534, 65534))
		},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			h := hostOf(t, sshdtest.Start(t, withTMPDIR(tmp, "")), Config{})
			startShell(t, h)
			startShell(t, h)
			f := spareOf(h)
			spoil(t, f)
			third := startShell(t, h)
			require.NotSame(t, f.feeder, third.Process.(*process).feeder)
		})
	}
}

// The next shell's feeder is not started ahead if that would leave no room for other programs.
func TestSpareLeavesRoom(t *testing.T) {
	for sessions, has := range map[int]bool{6: false, 7: true} { // two shells take four
		h := hostOf(t, sshdtest.Start(t), Config{MaxSessions: sessions})
		startShell(t, h)
		startShell(t, h)
		require.Equal(t, has, spareOf(h) != nil, sessions)
		require.Len(t, h.connections, 1)
	}
}

// TestFeederLeavesNothing checks that a feeder which gets no shell unlinks its FIFO, whatever
// ends it, at any moment.
func TestFeederLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	for _, sh := range []string{"dash", "bash", "busybox sh"} {
		args := strings.Fields(sh)
		at, err := exec.LookPath(args[0])
		if err != nil {
			t.Logf("no %s here", args[0])
			continue
		}
		line := strings.Replace(feedLine("mark"), "/bin/sh",
			strings.Join(append([]string{at}, args[1:]...), " "), 1)
		for i := range 120 {
			cmd := exec.Command("/bin/sh", "-c", line)
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
			in, err := cmd.StdinPipe()
			noError(t, err)
			out, err := cmd.StdoutPipe()
			noError(t, err)
			noError(t, cmd.Start())
			if i%3 == 0 { // at some moment of its work; else before its end
				time.Sleep(time.Duration(i) * 50 * time.Microsecond)
			} else {
				said, err := bufio.NewReader(out).ReadString('\n')
				noError(t, err)
				require.Equal(t, "\x1emark fifo "+tmp+"/.sandshell-mark\n", said, sh)
			}
			if end := []os.Signal{nil, syscall.SIGTERM, syscall.SIGHUP}[i/3%3]; end != nil {
				noError(t, cmd.Process.Signal(end))
			}
			in.Close()
			cmd.Wait()
			names, err := filepath.Glob(tmp + "/.s*")
			noError(t, err)
			require.Empty(t, names, "%s, round %d", sh, i)
		}
	}
}

// TestFIFOForAnyLoginShell checks that the command lines of a feeder and of its shell mean the same
// to every login shell.
func TestFIFOForAnyLoginShell(t *testing.T) {
	for _, login := range [][]string{{"sh"}, {"bash"}, {"dash"}, {"busybox", "ash"}, {"zsh"},
		{"fish"}, {"tcsh"}} {
		t.Run(strings.Join(login, " "), func(t *testing.T) {
			if _, err := exec.LookPath(login[0]); err != nil {
				t.Skipf("no %s here: install the package of that name", login[0])
			}
			dir := filepath.Join(t.TempDir(), "it's !1")
			hosttest.Execute(t, "mkdir", dir)
			run := func(line string) *exec.Cmd {
				return exec.Command(login[0], append(login[1:len(login):len(login)], "-c",
					line)...)
			}
			feeder := run(feedLine("mark"))
			feeder.Env = append(os.Environ(), "TMPDIR="+dir)
			in, err := feeder.StdinPipe()
			noError(t, err)
			out, err := feeder.StdoutPipe()
			noError(t, err)
			noError(t, feeder.Start())
			said, err := bufio.NewReader(out).ReadString('\n')
			noError(t, err)
			fifo := dir + "/.sandshell-mark"
			require.Equal(t, "\x1emark fifo "+fifo+"\n", said)
			info, err := os.Stat(fifo)
			noError(t, err)
			require.Equal(t, os.ModeNamedPipe|0o600, info.Mode())
			for _, name := range []string{fifo, ""} { // which the script asks for
				c, err := makeCommand(shellbox.Program{Args: []string{"cat"},
					Terminal: &shellbox.Terminal{Commands: true}}, nil, "mark", name)
				noError(t, err)
				shell := run(c.line)
				terminal, err := pty.Start(shell)
				noError(t, err)
				lines := bufio.NewReader(terminal)
				if name == "" {
					said, err := lines.ReadString('\n')
					noError(t, err)
					require.Equal(t, "\x1emark fifo\r\n", said)
					_, err = io.WriteString(terminal, fifo+"\n")
					noError(t, err)
				}
				for said = ""; !strings.HasPrefix(said, "\x1emark "); {
					said, err = lines.ReadString('\n')
					noError(t, err)
				}
				require.Equal(t, fmt.Sprintf("\x1emark %d\r\n", shell.Process.Pid), said)
				if name == "" {
					_, err = io.WriteString(in, "\na line\n")
					noError(t, err)
					said, err = lines.ReadString('\n')
					noError(t, err)
					require.Equal(t, "a line\r\n", said)
					noError(t, in.Close())
				} else {
					noError(t, shell.Process.Kill())
				}
				shell.Wait()
				terminal.Close()
			}
			noError(t, feeder.Wait())
			require.NoFileExists(t, fifo)
		})
	}
}
