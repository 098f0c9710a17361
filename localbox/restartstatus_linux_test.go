package localbox_test

import (
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/localbox"
)

// TestShellEndsAtPrompt checks that a shell that ends at its prompt is replaced, whatever its exit
// status.
func TestShellEndsAtPrompt(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "dash"} {
		t.Run(shell, func(t *testing.T) {
			for _, status := range []string{"3", "4", "5"} {
				box := open(t, localbox.Config{Shell: []string{shell}})
				res, err := box.Execute(t.Context(), "trap 'exit "+status+"' USR1")
				require.NoError(t, err)
				require.Zero(t, res.ExitCode)
				res, err = box.Execute(t.Context(), "{ sleep 0.1; kill -USR1 $$; } &")
				require.NoError(t, err)
				require.Zero(t, res.ExitCode)
				require.Eventually(t, func() bool {
					res, err = box.Execute(t.Context(), ":")
					require.NoError(t, err)
					return res.Restarted
				}, testenv.Limit, time.Millisecond)
			}
		})
	}
}
