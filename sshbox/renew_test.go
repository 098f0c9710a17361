package sshbox

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// TestRenewSessions gives sessions what a copy of a box has of its own. A session with an
// unfinished command gets it before its next command, even if another program attaches until then.
func TestRenewSessions(t *testing.T) {
	t.Parallel()
	testEngine(t)
	for _, c := range []Config{{Image: testImage}, {Image: testImage, Shell: []string{"dash"}},
		{Image: dockertest.Busybox}} {
		t.Run(c.Image+"-"+strconv.Itoa(len(c.Shell)), func(t *testing.T) {
			t.Parallel()
			c.Network, c.Keep = "none", true
			c.Env = []string{"A=old", "B=old", "SAME=old"}
			box := newBox(t, c)
			random := text(t, box, `[ "$RANDOM$RANDOM" = "$RANDOM$RANDOM" ] || echo yes`) != ""
			require.Equal(t, len(c.Shell) == 0, random)
			box.AddEnv("B=added")
			s, err := box.Open(t.Context(), sandbox.Env("SAME=session"))
			require.NoError(t, err)
			expect(t, box, "X=1; set -eu; RANDOM=5; (exit 3) || false | true; (exit 0)", 0, "")
			busy, err := box.Open(t.Context())
			require.NoError(t, err)
			r, err := busy.Execute(t.Context(), "RANDOM=5; printf '? '; read x; (exit 4)")
			require.NoError(t, err)
			require.Equal(t, sandbox.Waiting, r.State)

			require.NoError(t, shellbox.Renew(t.Context(), box.shell,
				[]string{"A=it's new", "B=new", "SAME=new"}))
			expect(t, box, `echo "$? $A $B $SAME $X"; env | grep ^A=`, 0,
				"0 it's new old new 1\nA=it's new\n")
			expect(t, s, `echo "$A $SAME"`, 0, "it's new session\n")
			if random {
				numbers := text(t, box, "echo $RANDOM $RANDOM")
				again := text(t, box, "RANDOM=5; echo $RANDOM $RANDOM")
				require.NotEqual(t, again, numbers, "it has another seed")
			} else {
				expect(t, box, "echo $RANDOM", 0, "5\n") // it is a variable like any other
			}

			require.NoError(t, box.Detach())
			attached, err := Engine{}.Attach(t.Context(), box.ContainerID())
			require.NoError(t, err)
			defer attached.Close()
			later, ok := attached.Session(busy.ID())
			require.True(t, ok)
			_, err = later.Input(t.Context(), "answer\n")
			require.NoError(t, err)
			expect(t, later, `echo "$? $x $A $B"`, 0, "4 answer it's new added\n")
		})
	}
}

// TestReapKeepers checks that Reap resumes a box that a killed program has left paused in the midst
// of a Snapshot, and removes what was to keep its checkpoint. It leaves that of a program that
// lives.
func TestReapKeepers(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	box := newBox(t, Config{Image: dockertest.Busybox, Network: "none"})
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	keeper := func(key string, pid int) string {
		created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
			Name: "sandshell-snapshot-" + key,
			Config: &container.Config{Image: dockertest.Busybox, Cmd: []string{"true"},
				Labels: map[string]string{"sandshell.keeper": key,
					"sandshell.keeper-of": box.ContainerID(),
					remotebox.HostLabel:   remotebox.HostID(),
					remotebox.PIDLabel:    strconv.Itoa(pid)}}})
		require.NoError(t, err)
		t.Cleanup(func() { docker.Remove(context.Background(), d, created.ID) })
		return created.ID
	}
	lives := keeper(box.host.container.Box+"-lives", os.Getpid())
	require.NoError(t, docker.Pause(t.Context(), d, box.ContainerID()))
	reap := func() {
		_, err := Engine{}.Reap(t.Context())
		require.NoError(t, err)
	}
	state := func() container.ContainerState {
		inspected, err := d.ContainerInspect(t.Context(), box.ContainerID(),
			client.ContainerInspectOptions{})
		require.NoError(t, err)
		return inspected.Container.State.Status
	}
	reap()
	require.Equal(t, container.StatePaused, state())
	left := keeper(box.host.container.Box+"-left", ended.Process.Pid)
	reap()
	require.Equal(t, container.StateRunning, state())
	expect(t, box, "echo goes on", 0, "goes on\n")
	_, err := d.ContainerInspect(t.Context(), left, client.ContainerInspectOptions{})
	require.Error(t, err)
	_, err = d.ContainerInspect(t.Context(), lives, client.ContainerInspectOptions{})
	require.NoError(t, err)
}
