package procfs

import (
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// On a machine so busy that to list its processes took a second, a waiting process that is not a
// descendant of the shell is still found soon.
func TestSlowListing(t *testing.T) {
	s := startSession(t)
	s.run("mkfifo f; sh -c '(sh -c \"read x </dev/tty; echo >f\" &); read y <f'; :")
	allProcesses.mu.Lock()
	allProcesses.listed, allProcesses.listDuration = time.Now(), time.Second
	allProcesses.mu.Unlock()
	begin := time.Now()
	s.until(func(l proc.Look) bool { return len(l.Waits) > 0 })
	require.Less(t, time.Since(begin), listShare*time.Second/4)
	s.terminal.Write([]byte("\n"))
	s.idle()
}

// A look does not wait for another look's listing, and uses the last listing. The first look has
// none.
func TestListingUnderWay(t *testing.T) {
	var c census
	c.listing = true
	r := newReader()
	require.Contains(t, c.list(r), os.Getpid())
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	c.listed, c.listing = time.Time{}, true
	require.NotContains(t, c.list(r), cmd.Process.Pid)
	c.listing = false
	require.Contains(t, c.list(r), cmd.Process.Pid)
}

// Looks may run side by side. Each finds who waits outside the shell's tree.
func TestLooksSideBySide(t *testing.T) {
	s := startSession(t)
	s.run("mkfifo f; sh -c '(sh -c \"read x </dev/tty; echo >f\" &); read y <f'; :")
	s.until(func(l proc.Look) bool { return len(l.Waits) > 0 })
	var looks sync.WaitGroup
	for range 8 {
		looks.Go(func() {
			for range 10 {
				assert.Len(t, Look(s.pid).Waits, 1)
			}
		})
	}
	looks.Wait()
	s.terminal.Write([]byte("\n"))
	s.idle()
}
