package main

import (
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// TestMain checks that no container and no goroutine is left.
func TestMain(m *testing.M) { dockertest.Main(m) }

// TestTreeSearch solves the puzzle, gives up, and tries a command that fails.
func TestTreeSearch(t *testing.T) {
	dockertest.Engine(t, dockertest.Busybox)
	var out strings.Builder
	require.NoError(t, run(t.Context(), dockertest.Busybox, 20, &out))
	t.Log(out.String())
	require.Contains(t, out.String(), "0 0    after 0 commands: trying 6 more\n")
	require.Contains(t, out.String(), "solved by 4 commands: fill the small jug, pour the small "+
		"jug into the big one, fill the small jug, pour the small jug into the big one\n")

	out.Reset()
	require.EqualError(t, run(t.Context(), dockertest.Busybox, 1, &out),
		"no solution after 1 forks: raise -forks")
	all := commands
	defer func() { commands = all }()
	commands = []command{{"fill the big jug", "big=4"}, {"drop it", "echo broken; false"}}
	require.EqualError(t, run(t.Context(), dockertest.Busybox, 20, &out),
		"echo broken; false: exit status 1: broken\n")
	commands = commands[:1]
	require.EqualError(t, run(t.Context(), dockertest.Busybox, 20, &out),
		"no commands lead to a solution")
}
