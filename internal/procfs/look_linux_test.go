package procfs

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

func TestLookIdle(t *testing.T) {
	s := startSession(t)
	l := s.idle()
	require.Regexp(t, `^pipe:\[\d+\]$`, l.Reads)
	require.Equal(t, s.pid, l.Foreground)
	require.False(t, l.Gone)
	require.False(t, l.Hidden)
	require.Empty(t, l.Waits)
	require.Positive(t, l.Turns)
	require.GreaterOrEqual(t, l.Total, l.Turns)
	require.Equal(t, "bash", l.Args[0])
	require.NotEmpty(t, l.Image)
	require.True(t, l.Modes.Known)
	st, err := os.Stat(s.tty)
	require.NoError(t, err)
	require.EqualValues(t, st.Sys().(*syscall.Stat_t).Rdev, l.TTY)
}

func TestLookGone(t *testing.T) {
	require.Equal(t, proc.Look{Gone: true}, Look(1<<22+1))
	cmd := exec.Command("sh", "-c", ":")
	require.NoError(t, cmd.Start())
	// It is a zombie until Wait.
	require.Eventually(t, func() bool {
		return Look(cmd.Process.Pid).Gone
	}, patience, time.Millisecond)
	cmd.Wait()
}

func TestLookImage(t *testing.T) {
	s := startSession(t)
	l := s.idle()
	s.run("exec cat")
	// The exec may fall within a look.
	now := s.until(func(now proc.Look) bool { return len(now.Waits) == 1 && now.Image != l.Image })
	require.Equal(t, []string{"cat"}, now.Args)
	require.Equal(t, s.pid, now.Waits[0].PID)
}

// Runs is set while a process runs, and Total and Turns grow.
func TestLookRuns(t *testing.T) {
	s := startSession(t)
	l := s.idle()
	s.run("while :; do :; done & while :; do :; done")
	s.until(func(l proc.Look) bool { return l.Runs && l.Reads == "" })
	s.until(func(m proc.Look) bool { return m.Total > l.Total+1 && m.Turns > l.Turns })
}

func TestStopped(t *testing.T) {
	s := startSession(t)
	s.runAndAwait(waitCase{command: "cat", waits: "cat"})
	s.terminal.Write([]byte{'Z' & 0x1f})
	s.idle()
	for range 100 {
		require.Empty(t, Look(s.pid).Waits)
	}
	s.runAndAwait(waitCase{command: "fg", waits: "cat"})
}

func TestProgram(t *testing.T) {
	s := startSession(t)
	s.idle()
	dir, env := Program(s.pid)
	require.NotEmpty(t, dir)
	require.Contains(t, env, "PATH="+os.Getenv("PATH"))
	s.run("cd /; export A=b; exec cat")
	s.until(func(l proc.Look) bool { return len(l.Waits) == 1 })
	dir, env = Program(s.pid)
	require.Equal(t, "/", dir)
	require.Contains(t, env, "A=b")
	dir, env = Program(1<<22 + 1)
	require.Empty(t, dir)
	require.Nil(t, env)
}
