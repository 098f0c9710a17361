package sshhost

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// in has sessions begin with a TMPDIR of the test's own, and with more lines of a script.
func in(tmp, more string) string {
	return "ForceCommand TMPDIR=" + tmp + "; export TMPDIR; " + more +
		` eval "$SSH_ORIGINAL_COMMAND"`
}

// nothingIn requires that no FIFO and no feeder is left.
func nothingIn(t *testing.T, h *Host, tmp string) {
	t.Helper()
	waitFor(t, "the directory to be empty", func() bool {
		names, err := filepath.Glob(tmp + "/.s*")
		return err == nil && len(names) == 0
	})
	waitFor(t, "the sessions to end", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range h.connections {
			if c.sessions > 0 || c.held > 0 {
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
			h := hostOf(t, sshdtest.Start(t, in(tmp, "")), c)
			hosttest.Commands(t, h)
			nothingIn(t, h, tmp)
		})
	}
}

// The FIFO has no name any more when the shell runs, and nothing else of ours is left in it.
func TestCommandsLeaveNothing(t *testing.T) {
	tmp := t.TempDir()
	h := hostOf(t, sshdtest.Start(t, in(tmp, "")), Config{})
	s := hosttest.StartShell(t, h)
	names, err := filepath.Glob(tmp + "/.s*")
	require.NoError(t, err)
	require.Empty(t, names)
	s.Say(t, "set | grep ^__; trap; ls -l /proc/$$/fd | grep -c 'in (deleted)'; echo up\n")
	s.Shows(t, "up\n")
	require.Equal(t, "1\nup\n", s.Shown(), "variables, traps, or more descriptors of the FIFO "+
		"than one")
}

func TestCommandsNoPlace(t *testing.T) {
	shell := shellbox.Program{Args: []string{"/bin/sh", "-i"},
		Terminal: &shellbox.Terminal{Rows: 24, Cols: 80, Commands: true}}
	t.Run("NoMkdir", func(t *testing.T) {
		h := hostOf(t, sshdtest.Start(t, in("/none", "PATH=/none;")), Config{})
		_, err := h.Start(t.Context(), shell)
		require.ErrorContains(t, err, "no place for a FIFO: ")
		require.ErrorContains(t, err, "mkdir")
	})
	t.Run("NoMkfifo", func(t *testing.T) {
		tmp, bin := t.TempDir(), t.TempDir()
		for _, name := range []string{"mkdir", "rm"} {
			path, err := exec.LookPath(name)
			noError(t, err)
			hosttest.Execute(t, "ln", "-s", path, bin)
		}
		h := hostOf(t, sshdtest.Start(t, in(tmp, "PATH="+bin+";")), Config{})
		_, err := h.Start(t.Context(), shell)
		require.ErrorContains(t, err, "mkfifo")
		nothingIn(t, h, tmp)
	})
	t.Run("OtherPlace", func(t *testing.T) {
		h := hostOf(t, sshdtest.Start(t, in("/none", "")), Config{})
		s := hosttest.StartShell(t, h)
		s.Say(t, "echo up\n")
		s.Shows(t, "up\n")
	})
	t.Run("NoProgram", func(t *testing.T) {
		tmp := t.TempDir()
		h := hostOf(t, sshdtest.Start(t, in(tmp, "")), Config{})
		none := shell
		none.Args = []string{"no-such-program"}
		_, err := h.Start(t.Context(), none)
		require.ErrorIs(t, err, exec.ErrNotFound)
		nothingIn(t, h, tmp)
	})
	t.Run("NoFeeder", func(t *testing.T) {
		tmp := t.TempDir()
		h := hostOf(t,
			sshdtest.Start(t,
				in(tmp, `case $SSH_ORIGINAL_COMMAND in *"exec cat"*) `+
					`echo "no cat here" >&2; exit 9;; esac;`)), Config{})
		_, err := h.Start(t.Context(), shell)
		require.ErrorContains(t, err, "status 9")
		require.ErrorContains(t, err, "no cat here")
		nothingIn(t, h, tmp)
	})
	t.Run("LateFeeder", func(t *testing.T) {
		tmp := t.TempDir()
		h := hostOf(t,
			sshdtest.Start(t,
				in(tmp, `case $SSH_ORIGINAL_COMMAND in *"exec cat"*) read -r x;; esac;`)), Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := h.Start(ctx, shell)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		nothingIn(t, h, tmp)
	})
}

// Whoever is told that there is no FIFO closes the session at once: the SIGHUP for that comes at
// any moment of the removal.
func TestCommandsHangUp(t *testing.T) {
	tmp, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"mkdir", "rm"} {
		path, err := exec.LookPath(name)
		noError(t, err)
		hosttest.Execute(t, "ln", "-s", path, bin)
	}
	c, err := makeCommand(shellbox.Program{Args: []string{"sh"},
		Terminal: &shellbox.Terminal{Commands: true}}, nil, "mark")
	noError(t, err)
	for _, sh := range []string{"dash", "bash", "busybox sh"} {
		args := strings.Fields(sh)
		path, err := exec.LookPath(args[0])
		if err != nil {
			t.Logf("no %s here", args[0])
			continue
		}
		line := strings.Replace(c.line, "/bin/sh", strings.Join(append([]string{path}, args[1:]...),
			" "), 1)
		for i := range 100 {
			cmd := exec.Command("/bin/sh", "-c", line)
			cmd.Env = []string{"PATH=" + bin, "TMPDIR=" + tmp}
			terminal, err := pty.Start(cmd)
			noError(t, err)
			said, err := bufio.NewReader(terminal).ReadString('\n')
			noError(t, err)
			require.Equal(t, "\x1emark no-fifo\r\n", said, sh)
			for end := time.Now().Add(time.Duration(i) * 10 * time.Microsecond); time.Now().Before(
				end); {
			}
			terminal.Close()
			cmd.Wait()
			names, err := filepath.Glob(tmp + "/.s*")
			noError(t, err)
			require.Empty(t, names, "%s, round %d", sh, i)
		}
	}
}

// The lines of the script and of the feeder mean the same to every login shell.
func TestFIFOForAnyLoginShell(t *testing.T) {
	for _, login := range [][]string{{"sh"}, {"bash"}, {"dash"}, {"busybox", "ash"}, {"zsh"},
		{"fish"}, {"tcsh"}} {
		t.Run(strings.Join(login, " "), func(t *testing.T) {
			if _, err := exec.LookPath(login[0]); err != nil {
				t.Skipf("no %s here: install the package of that name", login[0])
			}
			dir := filepath.Join(t.TempDir(), "it's !1")
			hosttest.Execute(t, "mkdir", dir)
			hosttest.Execute(t, "mkfifo", dir+"/in")
			reader := exec.Command("sh", "-c",
				`exec 3<>"$1" 4<"$1"; echo open; read -r x <&4; exec 3>&-; exec cat <&4`, "sh",
				dir+"/in")
			out, err := reader.StdoutPipe()
			noError(t, err)
			noError(t, reader.Start())
			b := make([]byte, 100)
			n, _ := out.Read(b)
			require.Equal(t, "open\n", string(b[:n]))
			feeder := exec.Command(login[0], append(login[1:len(login):len(login)], "-c",
				feedLine(dir+"/in"))...)
			feeder.Stdin = strings.NewReader("a line\n")
			said, err := feeder.CombinedOutput()
			require.NoError(t, err, "%s", said)
			n, _ = out.Read(b)
			require.Equal(t, "a line\n", string(b[:n]))
			noError(t, reader.Wait())
			require.NoDirExists(t, dir)
		})
	}
}
