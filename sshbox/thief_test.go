package sshbox

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/hosttest"
)

// TestThief: a program of the same user stops a shell that boxd has started, takes its next command
// and answers it. Where it may trace, it gets the command, but no result.
func TestThief(t *testing.T) {
	t.Parallel()
	box := newBox(t, Config{Image: testImage, Network: "none"})
	traces := newBox(t, Config{Image: testImage, Network: "none", CapAdd: []string{"SYS_PTRACE"}})
	hosttest.Thief(t, box, "open")
	hosttest.Thief(t, box, "pidfd")
	hosttest.Thief(t, traces, "pidfd")
	hosttest.Thief(t, traces, "continues")
}
