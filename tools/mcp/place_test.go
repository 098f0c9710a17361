package mcp

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/stretchr/testify/require"
)

// TestPlace checks that each session gets a box of the Spec in the place, which its end closes.
func TestPlace(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Place: localbox.Place{}, Spec: sandbox.Spec{Env: []string{"A=of spec"}}})
	require.NoError(t, err)
	defer s.Close()
	dirs := map[string]bool{}
	for range 2 {
		transport, err := s.Connect(t.Context())
		require.NoError(t, err)
		c := connect(t, transport, nil)
		out := text(t, c, "run", m{"command": `echo "$A"; pwd`})
		require.Contains(t, out, "of spec\n")
		dirs[strings.Split(out, "\n")[1]] = true
	}
	require.Len(t, dirs, 2)
	require.NoError(t, s.Close())
	for dir := range dirs {
		_, err := os.Stat(dir)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

// TestPlaceEgress checks that the box of a session has its way out, and that the model reads of it.
func TestPlaceEgress(t *testing.T) {
	t.Parallel()
	gate, err := egress.New(egress.Config{Allow: egress.Rules("a.test"), Advisory: true})
	require.NoError(t, err)
	defer gate.Close()
	s, err := New(Config{Place: localbox.Place{}, Egress: gate})
	require.NoError(t, err)
	defer s.Close()
	transport, err := s.Connect(t.Context())
	require.NoError(t, err)
	c := connect(t, transport, nil)
	list, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "run", list.Tools[0].Name)
	require.Regexp(t, `reach only this, .*: a\.test\.$`, list.Tools[0].Description)
	out := text(t, c, "run", m{"command": `at=${HTTP_PROXY#*@}
exec 3<>"/dev/tcp/${at%:*}/${at#*:}"; printf 'CONNECT x.test:22 HTTP/1.1\r\n\r\n' >&3; cat <&3`})
	require.Regexp(t, `(?s)407 .*\n\[egress: x\.test:22 refused\]\n$`, out)
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, gate.Close())
}

func TestPlaceWrong(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Place: localbox.Place{}, Spec: sandbox.Spec{PIDs: 9}})
	require.ErrorContains(t, err, "mcp: Config.Spec: localbox: Spec.PIDs: ")
	_, err = New(Config{Place: localbox.Place{},
		Open: func(context.Context) (*tools.Set, error) { return nil, nil }})
	require.EqualError(t, err, "mcp: Config.Open: Place is set, too: leave out one of the two")
	gate, err := egress.New(egress.Config{})
	require.NoError(t, err)
	_, err = New(Config{Egress: gate,
		Open: func(context.Context) (*tools.Set, error) { return nil, nil }})
	require.ErrorContains(t, err, "mcp: Config.Egress: it is for the boxes of Place")
}
