package browser

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArguments(t *testing.T) {
	args := arguments([]string{"--lang=de", "--disable-features=A,B", "--disable-features=C"})
	require.Contains(t, args, "--lang=de")
	require.Contains(t, args, disableFeatures+",A,B,C")
	require.NotContains(t, args, "--disable-features=A,B")
	require.Equal(t, len(flags)+2, len(args))
	require.False(t, slices.Contains(arguments(nil), "--disable-features=A,B"), "a call has changed the package's own")
}
