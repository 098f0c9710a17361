package sshbox

import (
	"context"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
)

// TestCloseOfRestarted restarts a kept box from outside. If another program has attached to it
// since, Close of the previous owner leaves the box alone. If none has, Close removes it.
func TestCloseOfRestarted(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	ctx := testContext(t)
	restarted := func() *DockerSSHBox {
		box, err := New(ctx, Config{Image: testImage, Network: "none", Keep: true})
		noError(t, err)
		t.Cleanup(func() {
			d.ContainerRemove(context.Background(), box.ContainerID(),
				client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		})
		_, err = d.ContainerRestart(ctx, box.ContainerID(), client.ContainerRestartOptions{})
		noError(t, err)
		_, err = box.Execute(ctx, "true")
		wantLost(t, "Execute", err, sandbox.LostRemoved)
		return box
	}
	taken := restarted()
	other, err := Engine{}.Attach(ctx, taken.ContainerID())
	noError(t, err)
	noError(t, taken.Close())
	r, err := other.Execute(ctx, "echo mine")
	wantExited(t, r, err, "mine\n")
	noError(t, other.Close())

	nobodys := restarted()
	noError(t, nobodys.Close())
	for _, box := range []*DockerSSHBox{taken, nobodys} {
		if _, err := d.ContainerInspect(ctx, box.ContainerID(),
			client.ContainerInspectOptions{}); err == nil {
			t.Errorf("container %s still exists", box.ContainerName())
		}
	}
}
