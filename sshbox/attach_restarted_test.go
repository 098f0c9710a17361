package sshbox

import (
	"context"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
)

// A kept box is restarted from outside, and another program attaches to it: whoever had it before
// has lost it, and Close lets go of it. If nobody has attached, Close removes it.
func TestCloseOfRestarted(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	ctx := limit(t)
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
		isLost(t, "Execute", err, sandbox.LostRemoved)
		return box
	}
	taken := restarted()
	other, err := Engine{}.Attach(ctx, taken.ContainerID())
	noError(t, err)
	noError(t, taken.Close())
	r, err := other.Execute(ctx, "echo mine")
	exited(t, r, err, "mine\n")
	noError(t, other.Close())

	nobodys := restarted()
	noError(t, nobodys.Close())
	for _, box := range []*DockerSSHBox{taken, nobodys} {
		if _, err := d.ContainerInspect(ctx, box.ContainerID(),
			client.ContainerInspectOptions{}); err == nil {
			t.Errorf("container %s is there", box.ContainerName())
		}
	}
}
