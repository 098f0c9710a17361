package sshbox

import (
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// TestEngineFilesUnchanged checks that the files which the engine makes for each container are no
// loss until a program changes them, also on an engine that says the container started before it
// had made them, as Docker 29 does.
func TestEngineFilesUnchanged(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	box := newBox(t, Config{Image: testImage, Network: "none"})
	inspected, err := d.ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{})
	require.NoError(t, err)
	c := &inspected.Container
	for _, started := range []string{c.State.StartedAt, c.Created, "2020-01-02T03:04:05.6Z"} {
		c.State.StartedAt = started
		require.Empty(t, box.lostMounts(t.Context(), c), started)
	}
	text(t, box, "echo 127.0.0.1 me >>/etc/hosts")
	require.Equal(t, []sandbox.Loss{{Kind: sandbox.Mounts,
		What: "/etc/hosts (the engine's, changed since)"}}, box.lostMounts(t.Context(), c))
}
