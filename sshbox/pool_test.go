package sshbox

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

func newPool(t testing.TB, c Config, size int) *Pool {
	t.Helper()
	imageOf(t, c.Image)
	p, err := NewPool(c, size)
	noError(t, err)
	t.Cleanup(func() { noError(t, p.Close()) })
	return p
}

// get gets a box that the test's end closes.
func get(t testing.TB, p *Pool, h Handover) *DockerSSHBox {
	t.Helper()
	box, err := p.Get(t.Context(), h)
	noError(t, err)
	t.Cleanup(func() { noError(t, box.Close()) })
	return box
}

func TestPool(t *testing.T) {
	d := imageOf(t, dockertest.Busybox)
	c := Config{Image: dockertest.Busybox, Network: "none"}
	p := newPool(t, c, 1)
	filled := func() {
		t.Helper()
		waitFor(t, "the pool is filled", func() bool { return p.Ready() == 1 })
	}
	filled()

	box := get(t, p, Handover{Env: []string{"TOKEN=it's secret"},
		Files: fstest.MapFS{"dir/file": {Data: []byte("mine"), Mode: 0o600}}})
	does(t, box, `echo "$TOKEN $(cat dir/file)"`, 0, "it's secret mine\n")
	session, err := box.Open(t.Context())
	noError(t, err)
	does(t, session, `echo "$TOKEN"`, 0, "it's secret\n")
	if got := runs(t, box, `printf %s "$TOKEN"`); got != "it's secret" {
		t.Errorf("a Run has TOKEN=%q", got)
	}
	inspected, err := d.ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{})
	noError(t, err)
	if strings.Contains(strings.Join(inspected.Container.Config.Env, " "), "secret") {
		t.Error("the engine knows the secret")
	}

	// One that has died is not handed out. An empty pool makes one.
	filled()
	list, err := Engine{Docker: d}.List(t.Context())
	noError(t, err)
	for _, b := range list {
		if b.Owner.PID == os.Getpid() && b.ID != box.ContainerID() {
			_, err = d.ContainerKill(t.Context(), b.ID, client.ContainerKillOptions{Signal: "KILL"})
			noError(t, err)
		}
	}
	does(t, get(t, p, Handover{}), "echo alive$TOKEN", 0, "alive\n")
	noError(t, p.Close())
	does(t, get(t, p, Handover{Env: []string{"A=1"}}), "echo $A", 0, "1\n")

	// What is wrong with the handover leaves no box, and says nothing of the values.
	for _, env := range []string{"A", "a b=secret", "=secret"} {
		_, err := p.Get(t.Context(), Handover{Env: []string{env}})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", env, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Get(cancelled, Handover{}); err == nil {
		t.Error("a box for nobody")
	}
	if _, err := NewPool(Config{Name: "one"}, 2); err == nil {
		t.Error("one name for two boxes")
	}
	if _, err := NewPool(Config{}, -1); err == nil {
		t.Error("a pool of less than nothing")
	}
}

// One that does not answer, since somebody has paused it, is not handed out either, and keeps
// nobody from closing the pool.
func TestPoolPaused(t *testing.T) {
	testenv.NeedsAll(t, "a box has ten seconds to answer; TestPool has one that is dead")
	d := imageOf(t, dockertest.Busybox)
	p := newPool(t, Config{Image: dockertest.Busybox, Network: "none"}, 1)
	pauseReady := func() {
		waitFor(t, "the pool is filled", func() bool { return p.Ready() == 1 })
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
	does(t, box, "echo alive", 0, "alive\n")
	noError(t, box.Close())
	pauseReady()
	noError(t, p.Close())
	dockertest.NoContainers(t)
}

// BenchmarkPool is the time to a box that is ready, beside what it does there: setting a variable.
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
			// what is being made takes the processor
			waitFor(b, "the pool is filled", func() bool { return p.Ready() == 4 })
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
