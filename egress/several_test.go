package egress_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// TestSeveralExits checks that the Exits of one box may be closed in any order: while there is one,
// programs reach what it allows, and the last one leaves nothing.
func TestSeveralExits(t *testing.T) {
	t.Parallel()
	t.Run("LocalBox", func(t *testing.T) {
		t.Parallel()
		python(t)
		box := boxtest.Local(t)
		dir, err := box.PluginDir()
		require.NoError(t, err)
		severalExits(t, box, dir, [][]int{{0, 1}, {1, 0}, {0, 1, 2}, {0, 2, 1}, {1, 0, 2},
			{1, 2, 0}, {2, 0, 1}, {2, 1, 0}})
	})
	t.Run("container", func(t *testing.T) {
		t.Parallel()
		testenv.NeedsAll(t, "the scripts are the same on this machine")
		box := boxtest.Container(t, sshbox.Config{Network: "none", User: "1000",
			Shell: []string{"dash"}})
		severalExits(t, box, "/tmp", [][]int{{0, 1, 2}, {1, 0, 2}})
	})
}

func severalExits(t *testing.T, box sandbox.Sandbox, dir string, orders [][]int) {
	g := gateTo(t, server(t), egress.Config{Advisory: true, Secrets: []egress.Secret{{
		Env: "API_KEY", Hosts: []string{"https://a.example.com"},
		Value: func(context.Context) (string, error) { return "a value", nil }}}})
	other, err := box.Open(t.Context())
	require.NoError(t, err)
	show := func(s sandbox.Session) string {
		return execute(t, s, "env | grep -v ^_= | sort; ls -A "+dir)
	}
	before, beforeOther := show(box), show(other)
	for _, order := range orders {
		var exits []*egress.Exit
		for range order {
			x, err := g.Attach(t.Context(), box)
			require.NoError(t, err)
			exits = append(exits, x)
		}
		for _, i := range order {
			require.Contains(t, execute(t, other, fetch), "hello from", "%v, %d", order, i)
			require.NoError(t, exits[i].Close())
		}
		require.Equal(t, before, show(box), order)
		require.Equal(t, beforeOther, show(other), order)
	}
}
