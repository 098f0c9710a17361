package sshbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// newPool makes a pool, which it closes when the test ends.
func newPool(t testing.TB, c Config, size int) *Pool {
	t.Helper()
	needImage(t, c.Image)
	p, err := NewPool(c, size)
	noError(t, err)
	t.Cleanup(func() { noError(t, p.Close()) })
	return p
}

// getBox takes a box from the pool, and closes it when the test ends.
func getBox(t testing.TB, p *Pool, h Handover) *DockerSSHBox {
	t.Helper()
	box, err := p.Get(t.Context(), h)
	noError(t, err)
	t.Cleanup(func() { noError(t, box.Close()) })
	return box
}

// TestPool takes boxes from a pool, with variables and files of the handover.
func TestPool(t *testing.T) {
	t.Parallel()
	d := needImage(t, dockertest.Busybox)
	const label = "sandshell-test-pool" // on this test's containers only
	own := fmt.Sprint(os.Getpid())
	c := Config{Image: dockertest.Busybox, Network: "none", Labels: map[string]string{label: own}}
	p := newPool(t, c, 1)
	waitFilled := func() {
		t.Helper()
		waitFor(t, "the pool to be full", func() bool { return p.Ready() == 1 })
	}
	waitFilled()

	box := getBox(t, p, Handover{Env: []string{"TOKEN=it's secret"},
		Files: fstest.MapFS{"dir/file": {Data: []byte("mine"), Mode: 0o600}}})
	expect(t, box, `echo "$TOKEN $(cat dir/file)"`, 0, "it's secret mine\n")
	session, err := box.Open(t.Context())
	noError(t, err)
	expect(t, session, `echo "$TOKEN"`, 0, "it's secret\n")
	if got := script(t, box, `printf %s "$TOKEN"`); got != "it's secret" {
		t.Errorf("a Run has TOKEN=%q", got)
	}
	inspected, err := d.ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{})
	noError(t, err)
	if strings.Contains(strings.Join(inspected.Container.Config.Env, " "), "secret") {
		t.Error("the engine knows the secret")
	}

	// The pool hands out no box that has ended. If it is empty, it makes one.
	waitFilled()
	list, err := d.ContainerList(t.Context(), client.ContainerListOptions{
		Filters: client.Filters{}.Add("label", label+"="+own)})
	noError(t, err)
	if len(list.Items) != 2 {
		t.Fatalf("%d containers, want the box and one in the pool", len(list.Items))
	}
	for _, b := range list.Items {
		if b.ID != box.ContainerID() {
			_, err = d.ContainerKill(t.Context(), b.ID, client.ContainerKillOptions{Signal: "KILL"})
			noError(t, err)
		}
	}
	expect(t, getBox(t, p, Handover{}), "echo alive$TOKEN", 0, "alive\n")
	noError(t, p.Close())
	expect(t, getBox(t, p, Handover{Env: []string{"A=1"}}), "echo $A", 0, "1\n")

	// A handover that fails leaves no box, and its error has no values of variables.
	for _, env := range []string{"A", "a b=secret", "=secret"} {
		_, err := p.Get(t.Context(), Handover{Env: []string{env}})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", env, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Get(cancelled, Handover{}); err == nil {
		t.Error("Get after cancel returned a box")
	}
	if _, err := NewPool(Config{Name: "one"}, 2); err == nil {
		t.Error("NewPool accepts one name for two boxes")
	}
	if _, err := NewPool(Config{}, -1); err == nil {
		t.Error("NewPool accepts a negative size")
	}
}

// TestPoolPaused pauses a box in the pool, so that it does not answer. The pool does not hand it
// out, and can be closed.
func TestPoolPaused(t *testing.T) {
	testenv.NeedsAll(t, "it waits ten seconds for an answer; TestPool has a box that has ended")
	d := needImage(t, dockertest.Busybox)
	p := newPool(t, Config{Image: dockertest.Busybox, Network: "none"}, 1)
	pauseReady := func() {
		waitFor(t, "the pool to be full", func() bool { return p.Ready() == 1 })
		list, err := Engine{Docker: d}.List(t.Context())
		noError(t, err)
		for _, b := range list {
			if b.Owner.PID == os.Getpid() && b.State == "running" {
				err = docker.Pause(t.Context(), d, b.ID)
				noError(t, err)
			}
		}
	}
	pauseReady()
	box, err := p.Get(t.Context(), Handover{})
	noError(t, err)
	expect(t, box, "echo alive", 0, "alive\n")
	noError(t, box.Close())
	pauseReady()
	noError(t, p.Close())
	dockertest.NoContainers(t)
}

// BenchmarkPool measures Get of a box that is ready. Its floor is a command that sets a variable,
// as the handover does.
func BenchmarkPool(b *testing.B) {
	p := newPool(b, Config{Image: dockertest.Busybox, Network: "none"}, 4)
	box := newBox(b, Config{Image: dockertest.Busybox, Network: "none"})
	b.Run("Floor", func(b *testing.B) {
		for b.Loop() {
			if _, err := box.Execute(b.Context(), "export A=1"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			// Making boxes would take processor time from what is measured.
			waitFor(b, "the pool to be full", func() bool { return p.Ready() == 4 })
			b.StartTimer()
			box, err := p.Get(b.Context(), Handover{Env: []string{"A=1"}})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			box.Close()
			b.StartTimer()
		}
	})
}
