package sshbox

import (
	"fmt"
	"os"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// A start that fails together with the way to its engine may leave a container. Reap takes it, also
// when this program goes on.
func TestReapFailedStart(t *testing.T) {
	d := testEngine(t)
	c := newCable(t)
	ctx := limit(t)
	through, err := client.New(client.WithHost("unix://" + c.path))
	noError(t, err)
	defer through.Close()
	config := Config{Image: testImage, Network: "none", Docker: through,
		Name: fmt.Sprintf("sandshell-left-%d", os.Getpid())}
	there := func() bool {
		_, err := d.ContainerInspect(ctx, config.Name, client.ContainerInspectOptions{})
		if err != nil && !errdefs.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	unplugged := make(chan struct{})
	go func() {
		defer close(unplugged)
		for !there() && ctx.Err() == nil {
		}
		c.Unplug(true)
	}()
	box, err := New(ctx, config)
	<-unplugged
	if err == nil {
		box.Close()
		t.Fatal("New was faster than the cut")
	}
	if !there() {
		t.Fatalf("nothing is left: %v", err)
	}
	_, err = Engine{}.Reap(ctx)
	noError(t, err)
	if there() {
		t.Error("Reap has left the container of a failed start")
	}
}
