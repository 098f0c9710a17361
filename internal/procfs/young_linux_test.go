package procfs

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A generation finds this process's child, and not what is older than itself. It looks once at what
// is older.
func TestGeneration(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	child := cmd.Process.Pid
	var g generation
	found := g.young()
	require.Contains(t, found, child)
	require.Contains(t, found, os.Getpid())

	s, ok := newReader().stat(child)
	require.True(t, ok)
	g.begin = s.Start + 1
	require.NotContains(t, g.young(), child)
	g.begin = 0
	found = g.young()
	require.NotContains(t, found, child, "it is remembered")
	for e := range g.older {
		delete(g.older, e)
	}
	require.Contains(t, g.young(), child)
}

// Shell says the same of an idle shell as Look.
func TestShell(t *testing.T) {
	s := startSession(t)
	s.until(func(l proc.Look) bool { return l.Reads != "" })
	l := Look(s.pid)
	require.Equal(t, proc.Shell{TTY: l.TTY, Reads: l.Reads, Image: l.Image}, Shell(s.pid))
	require.NotZero(t, l.TTY)
	require.NotEmpty(t, l.Image)
}
