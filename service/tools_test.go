package service

import (
	"context"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// TestToolBoxes checks that each pytool.Needs has a box, and that calls find the same box again
// when it was paused, when its programs have ended, and when the service was restarted.
func TestToolBoxes(t *testing.T) {
	testenv.NeedsAll(t, "it makes boxes with Python; pytool's TestRunner and TestLife have the "+
		"halves of it")
	d := dockertest.Engine(t, dockertest.Image, dockertest.Busybox)
	name := uniqueName(t)
	spec := &Spec{ID: "python", Config: sshbox.Config{Image: dockertest.Image, Network: "none"}}
	count := func(r *pytool.Runner, env ...string) string {
		t.Helper()
		res, err := r.Call(t.Context(), pytool.Tool{
			Source: "import os\ndef f():\n  open('/tmp/calls', 'a').write('x')\n  return " +
				"os.path.getsize('/tmp/calls')",
			Function: "f", Needs: pytool.Needs{Image: "python", Env: env},
		}, pytool.Call{})
		require.NoError(t, err)
		return string(res.Value)
	}
	s := open(t, name, nil, spec)
	r, err := pytool.NewRunner(pytool.Config{New: s.ToolBoxes("me")})
	require.NoError(t, err)
	require.Equal(t, "1", count(r))
	require.Equal(t, "2", count(r))
	p, err := s.Search(t.Context(), Query{Owner: "me"})
	require.NoError(t, err)
	require.Len(t, p.Items, 1)
	id := p.Items[0].ID
	require.NoError(t, s.Pause(t.Context(), id))
	require.Equal(t, "3", count(r))
	_, err = d.ContainerKill(t.Context(), "sandshell-"+name+"-"+id,
		client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
	eventually(t, "it has ended", func() bool { return status(t, s, id) == Paused })
	require.Equal(t, "4", count(r), "its programs have ended, its files are there")
	require.Equal(t, "1", count(r, "A=1"), "another configuration has another box")
	require.Equal(t, "5", count(r))
	require.NoError(t, r.Close())

	again := open(t, name, nil, spec)
	r, err = pytool.NewRunner(pytool.Config{New: again.ToolBoxes("me")})
	require.NoError(t, err)
	require.Equal(t, "6", count(r))
	require.NoError(t, r.Close())
	require.NoError(t, again.Delete(context.Background(), id))
}
