package sshbox

import (
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// TestDevicesGone removes a device that a shell needs. Open returns at once, and its error names
// the device.
func TestDevicesGone(t *testing.T) {
	t.Parallel()
	testEngine(t)
	box, err := New(t.Context(), Config{Image: testImage, Network: "none",
		StartLimit: 2 * testenv.Limit})
	require.NoError(t, err)
	defer box.Close()
	for _, device := range []string{"/dev/null", "/dev/tty"} {
		_, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"rm", "-f", device}})
		require.NoError(t, err)
		begin := time.Now()
		_, err = box.Open(t.Context())
		require.ErrorContains(t, err, device+" is missing or no device")
		require.Less(t, time.Since(begin), testenv.Limit)
	}
}
