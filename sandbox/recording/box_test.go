package recording_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/recording"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

// TestPlugins: sandbox.As finds what the recorded box is beyond a Sandbox.
func TestPlugins(t *testing.T) {
	t.Parallel()
	box := newBox(t)
	rec := recording.New(recording.New(box, io.Discard), io.Discard)
	require.NoError(t, plugin.Install(t.Context(), rec,
		plugin.Plugin{Name: "greeting", Env: []string{"GREETING=hello"}}))
	res, err := rec.Execute(t.Context(), `echo "$GREETING"`)
	require.NoError(t, err)
	require.Equal(t, "hello\n", res.Output)
	s, err := rec.Open(t.Context())
	require.NoError(t, err)
	res, err = s.Execute(t.Context(), `echo "$GREETING"`)
	require.NoError(t, err)
	require.Equal(t, "hello\n", res.Output, "the box has been told of the variable, not only the "+
		"main session")
	inner, ok := sandbox.As[*localbox.LocalBox](rec)
	require.True(t, ok)
	require.Same(t, box, inner)
	_, ok = sandbox.As[fmt.Formatter](rec)
	require.False(t, ok)
	require.NoError(t, rec.Close())
}

// TestConformanceRecorded: a recorded box behaves as the box does.
func TestConformanceRecorded(t *testing.T) {
	t.Parallel()
	groups := []string{"Life"}
	switch { // what only the shell decides, a recording does not change
	case testenv.Full():
		groups = append(groups, "Background", "Concurrency", "Interaction", "Output", "ShellEnd",
			"State", "Syntax", "Time")
	case testenv.All():
		// make test has the other
		groups = []string{"Background", "Concurrency", "Interaction", "Output", "ShellEnd", "Time"}
	}
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		rec := recording.New(newBox(t), io.Discard)
		t.Cleanup(func() { rec.Close() })
		return rec
	}, testenv.Suite(sandboxtest.Groups(groups...))...)
}
