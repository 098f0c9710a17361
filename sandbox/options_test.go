package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// TestMaxLog: a job's log has a bound by default.
func TestMaxLog(t *testing.T) {
	for _, opts := range [][]sandbox.SessionOption{nil, {nil}, {sandbox.MaxLog(0)},
		{sandbox.MaxLog(-1)}} {
		require.EqualValues(t, 64<<20, sandbox.NewSessionOptions(opts...).MaxLog)
	}
	require.EqualValues(t, 5, sandbox.NewSessionOptions(sandbox.MaxLog(5)).MaxLog)
}

// TestSize: 0 is the default.
func TestSize(t *testing.T) {
	for _, opts := range [][]sandbox.SessionOption{nil, {sandbox.Size(0, 0)}} {
		o := sandbox.NewSessionOptions(opts...)
		require.Equal(t, [2]int{24, 80}, [2]int{o.Rows, o.Cols})
	}
	o := sandbox.NewSessionOptions(sandbox.Size(0, 132))
	require.Equal(t, [2]int{24, 132}, [2]int{o.Rows, o.Cols})
}
