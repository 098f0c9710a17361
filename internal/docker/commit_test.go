package docker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSnapshotDepth checks that the last layer that the engine allows is allowed, and that the
// error after it says what to do.
func TestSnapshotDepth(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkDepth(124))
	require.ErrorContains(t, checkDepth(125), "125 layers, and the engine allows no more than "+
		"125: go back to an earlier snapshot")
}
