package sshbox

import (
	"context"
	"io"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/test/dockertest"
)

const testImage = dockertest.Image

// testEngine returns a client of the engine. It skips the test if there is no engine or no test
// image.
func testEngine(t testing.TB) *client.Client {
	t.Helper()
	return dockertest.Engine(t, testImage)
}

// noContainers expects that this process has no containers.
func noContainers(t testing.TB) {
	t.Helper()
	dockertest.NoContainers(t)
}

// noContainersOf fails the test if the engine has containers of an image, which is the test's own.
// Unlike noContainers, it may run beside other tests.
func noContainersOf(t *testing.T, image string) {
	t.Helper()
	list, err := testEngine(t).ContainerList(t.Context(), client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("ancestor", image)})
	noError(t, err)
	for _, c := range list.Items {
		t.Errorf("left behind: %v of %s", c.Names, image)
	}
}

// makeContainer makes a container, as New does.
func makeContainer(ctx context.Context, c Config) (*dockerHost, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	h, _, err := newHost(ctx, &c)
	return h, err
}

// testContainer makes a container of the test image, which it removes when the test ends.
func testContainer(t testing.TB, change func(*Config)) *dockerHost {
	t.Helper()
	testEngine(t)
	c := Config{Image: testImage, Network: "none"}
	if change != nil {
		change(&c)
	}
	h, err := makeContainer(t.Context(), c)
	noError(t, err)
	t.Cleanup(func() { noError(t, h.Close()) })
	return h
}

// BenchmarkContainer measures a box's start, beside the same calls of the engine.
func BenchmarkContainer(b *testing.B) {
	d := testEngine(b)
	b.Run("New", func(b *testing.B) {
		for b.Loop() {
			h, err := makeContainer(b.Context(), Config{Image: testImage, Network: "none"})
			noError(b, err)
			run(b, h, sh(":"))
			b.StopTimer()
			noError(b, h.Close())
			b.StartTimer()
		}
	})
	b.Run("NewBox", func(b *testing.B) {
		for b.Loop() {
			box, err := New(b.Context(), Config{Image: testImage, Network: "none"})
			noError(b, err)
			_, err = box.Execute(b.Context(), ":")
			noError(b, err)
			b.StopTimer()
			noError(b, box.Close())
			b.StartTimer()
		}
	})
	// The floor is docker create, start, and one exec.
	b.Run("New/floor", func(b *testing.B) {
		for b.Loop() {
			yes := true
			created, err := d.ContainerCreate(b.Context(), client.ContainerCreateOptions{
				Config: &container.Config{Image: testImage, Cmd: []string{"sleep", "infinity"},
					Labels: map[string]string{"sandshell": remotebox.Version()}},
				HostConfig: &container.HostConfig{Init: &yes, NetworkMode: "none"},
			})
			noError(b, err)
			_, err = d.ContainerStart(b.Context(), created.ID, client.ContainerStartOptions{})
			noError(b, err)
			exec, err := d.ExecCreate(b.Context(), created.ID,
				client.ExecCreateOptions{AttachStdout: true, Cmd: []string{"sh", "-c", ":"}})
			noError(b, err)
			attached, err := d.ExecAttach(b.Context(), exec.ID, client.ExecAttachOptions{})
			noError(b, err)
			io.Copy(io.Discard, attached.Reader)
			attached.Close()
			b.StopTimer()
			_, err = d.ContainerRemove(b.Context(), created.ID,
				client.ContainerRemoveOptions{Force: true})
			noError(b, err)
			b.StartTimer()
		}
	})
}
