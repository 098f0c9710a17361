package environ

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	require.NoError(t, Check("Env", nil))
	require.NoError(t, Check("Env", []string{"A=", "B=b=c", "odd.name=\n", "A=1"}))
	for entry, message := range map[string]string{
		"A": `"A" has no "="`, "": "it is empty", "=a": "it has no name",
		"A=\x00": `"A" has a NUL byte`, "\x00=a": `"\x00" has a NUL byte`,
		"A B=secret": `the name "A B" has a space or a control character`,
	} {
		require.EqualError(t, Check("Env", []string{"X=1", entry, "Y"}),
			"Env[1]: "+message+": want NAME=value")
	}
}

func TestMerge(t *testing.T) {
	require.Empty(t, Merge())
	require.Equal(t, []string{"A=3", "A_B=x", "B=b=c"},
		Merge([]string{"B=b", "A=1", "A=2"}, nil, []string{"A_B=x", "A=3", "B=b=c"}))
}
