package sshbox

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// TestReapFailedStart fails a start by an outage of the engine's connection, which leaves a
// container. Reap removes it, even while this program is running.
func TestReapFailedStart(t *testing.T) {
	d := testEngine(t)
	proxy := newEngineProxy(t)
	ctx := testContext(t)
	through, err := client.New(client.WithHost("unix://" + proxy.path))
	noError(t, err)
	defer through.Close()
	config := Config{Image: testImage, Network: "none", Docker: through,
		Name: fmt.Sprintf("sandshell-left-%d", os.Getpid())}
	exists := func() bool {
		_, err := d.ContainerInspect(ctx, config.Name, client.ContainerInspectOptions{})
		if err != nil && !errdefs.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	unplugged := make(chan struct{})
	go func() {
		defer close(unplugged)
		for !exists() && ctx.Err() == nil {
		}
		proxy.Unplug(true)
	}()
	box, err := New(ctx, config)
	<-unplugged
	if err == nil {
		box.Close()
		t.Fatal("New was faster than the cut")
	}
	if !exists() {
		t.Fatalf("the failed start has left no container: %v", err)
	}
	_, err = Engine{}.Reap(ctx)
	noError(t, err)
	if exists() {
		t.Error("Reap has left the container of a failed start")
	}
}

// TestBoxEndsAtOnce shows that New says why a box has ended before it was ready.
func TestBoxEndsAtOnce(t *testing.T) {
	needImage(t, shellImage)
	for what, c := range map[string]struct {
		Config
		want *regexp.Regexp
	}{
		"memory":    {Config{Memory: 6 << 20}, regexp.MustCompile(`memory|killed`)},
		"processes": {Config{PIDs: 1}, regexp.MustCompile(`thread|process|resource`)},
		"no shell":  {Config{Shell: []string{"/no/shell"}}, regexp.MustCompile(`/no/shell`)},
	} {
		c.Image, c.Network = shellImage, "none"
		box, err := New(t.Context(), c.Config)
		if err == nil {
			t.Logf("%s: the box starts all the same", what)
			noError(t, box.Close())
			continue
		}
		t.Logf("%s: %v", what, err)
		if !c.want.MatchString(err.Error()) || !strings.Contains(err.Error(), shellImage) {
			t.Errorf("%s: %v", what, err)
		}
		noContainers(t)
	}
}
