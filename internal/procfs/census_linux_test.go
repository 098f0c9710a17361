package procfs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A machine so busy that to list its processes took a second: who is nobody's child is found soon
// after nevertheless.
func TestListedSlowly(t *testing.T) {
	s := startSession(t)
	s.run("mkfifo f; sh -c '(sh -c \"read x </dev/tty; echo >f\" &); read y <f'; :")
	everyone.mu.Lock()
	everyone.listed, everyone.took = time.Now(), time.Second
	everyone.mu.Unlock()
	begin := time.Now()
	s.until(func(l proc.Look) bool { return len(l.Waits) > 0 })
	require.Less(t, time.Since(begin), listShare*time.Second/4)
	s.terminal.Write([]byte("\n"))
	s.idle()
}
