package sshbox

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/hosttest"
)

// TestThief has a program of the same user stop a shell that boxd has started, read its next
// command and answer it. A program that may trace gets the command, but its answer is not taken for
// a result.
func TestThief(t *testing.T) {
	t.Parallel()
	box := newBox(t, Config{Image: testImage, Network: "none"})
	traces := newBox(t, Config{Image: testImage, Network: "none", CapAdd: []string{"SYS_PTRACE"}})
	hosttest.Thief(t, box, "open")
	hosttest.Thief(t, box, "pidfd")
	hosttest.Thief(t, traces, "pidfd")
	hosttest.Thief(t, traces, "continues")
}
