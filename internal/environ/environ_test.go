package environ

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	require.NoError(t, Check(nil))
	require.NoError(t, Check([]string{"A=", "B=b=c", "odd.name=\n", "A=1"}))
	for entry, message := range map[string]string{"A": `"A"`, "": `""`, "=a": `""`, "A=\x00": `"A"`,
		"\x00=a": `"\x00"`} {
		require.EqualError(t, Check([]string{"X=1", entry, "Y"}),
			"environment "+message+": want NAME=value without NUL bytes")
	}
}

func TestMerge(t *testing.T) {
	require.Empty(t, Merge())
	require.Equal(t, []string{"A=3", "A_B=x", "B=b=c"},
		Merge([]string{"B=b", "A=1", "A=2"}, nil, []string{"A_B=x", "A=3", "B=b=c"}))
}
