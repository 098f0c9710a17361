package sshbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// starve makes Go's runtime end a boxd: the process gets no more memory, and needs some for the
// programs that begin starts.
func starve(t *testing.T, pid int, begin func() error) {
	t.Helper()
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if !strings.Contains(string(command), "boxd") || os.Getuid() != 0 {
		t.Skip("this test cannot limit boxd's memory: run it as root, on boxd's machine")
	}
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{}, nil))
	for range 200 {
		if err := begin(); err != nil {
			break
		}
	}
}

// requireLastWords checks that a box is lost, and that the error has what Go's runtime has printed,
// as one quoted text.
func requireLastWords(t *testing.T, err error, how string) {
	t.Helper()
	var lost *sandbox.LostError
	require.True(t, errors.As(err, &lost), "%v", err)
	reason, words, found := strings.Cut(lost.Reason, "; boxd's last words: ")
	require.True(t, found, lost.Reason)
	require.Contains(t, reason, how)
	// A collector of garbage that gets no memory may find that out by a signal.
	require.Regexp(t, "fatal error: |SIGSEGV: ", words)
	require.Contains(t, words, "runtime.") // a function; the middle of a long text is left out
	require.NotContains(t, words, "\n")
	require.Less(t, len(words), 5000)
}

// TestContainerLastWords ends a container's boxd by an error of Go's runtime. The engine removes
// the container and its log at once, and callers learn of the error all the same.
func TestContainerLastWords(t *testing.T) {
	d := testEngine(t)
	h := testContainer(t, nil)
	inspected, err := d.ContainerInspect(t.Context(), h.container.ID,
		client.ContainerInspectOptions{})
	require.NoError(t, err)
	starve(t, inspected.Container.State.Pid, func() error {
		_, err := h.Start(t.Context(), sh("cat /dev/zero"))
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	requireLastWords(t, h.Lost(ctx), "the container ended with status 2")
}
