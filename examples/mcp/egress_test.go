package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// TestAllow shows what a model reads of what a container may reach.
func TestAllow(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Image)
	a := start(t, server(t, "-linger", "1s", "-allow", "packages.example.com"))
	said := a.call("run", "command", `python3 -c 'import urllib.request as u
u.urlopen("https://evil.test/")' 2>&1 | tail -n 1`)
	require.Contains(t, said, "403")
	require.Contains(t, said, "[egress: evil.test:443 refused")
}

func TestAllowWrong(t *testing.T) {
	t.Setenv("KEY", "x")
	for _, s := range []settings{{network: "bridge", allow: []string{"a.test"}},
		{network: "none", local: true, allow: []string{"a.test"}}} {
		_, err := s.gate()
		require.ErrorContains(t, err, "leave out -local and -network")
	}
	var s settings
	require.ErrorContains(t, s.addSecret("KEY"), "give NAME=rule")
	require.ErrorContains(t, s.addSecret("NO_SUCH_KEY=a.test"), "NO_SUCH_KEY is not set here")
	require.NoError(t, s.addSecret("KEY=a.test"))
	s.network = "none"
	_, err := s.gate()
	require.ErrorContains(t, err, "no rule of Config.Allow allows https://a.test: add one")
	s.allow = []string{"a.test"}
	gate, err := s.gate()
	require.NoError(t, err)
	require.NoError(t, gate.Close())
}
