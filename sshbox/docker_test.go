package sshbox

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// testImage is made by "make image".
const testImage = "sandshell-test:latest"

// docker returns a client of the engine, and skips the test where there is no engine or no image. With
// SANDSHELL_REQUIRE_DOCKER=1 it fails then.
func docker(t testing.TB) *client.Client {
	t.Helper()
	fail := t.Skipf
	if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
		fail = t.Fatalf
	}
	c, err := client.New(client.FromEnv)
	noError(t, err)
	t.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.ImageInspect(ctx, testImage); err != nil {
		fail("no engine, or no image %s (make image): %v", testImage, err)
	}
	return c
}

// makeContainer makes a container with OpenSSH's sshd as a host.
func makeContainer(ctx context.Context, c Config) (*containerHost, error) {
	c.Server = OpenSSH
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	h, _, err := newDockerHost(ctx, c)
	if err != nil {
		return nil, err
	}
	return h.(*containerHost), nil
}

// containerOf makes a container of the test image, which the test's end removes.
func containerOf(t testing.TB, change func(*Config)) *containerHost {
	t.Helper()
	docker(t)
	c := Config{Image: testImage, Network: "none"}
	if change != nil {
		change(&c)
	}
	h, err := makeContainer(t.Context(), c)
	noError(t, err)
	t.Cleanup(func() { noError(t, h.Close()) })
	return h
}

func BenchmarkContainer(b *testing.B) {
	d := docker(b)
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
	// docker create, start, and one exec.
	b.Run("New/floor", func(b *testing.B) {
		for b.Loop() {
			e := &engine{Client: d}
			h := newContainer(e, Config{Image: testImage})
			yes := true
			created, err := d.ContainerCreate(b.Context(), client.ContainerCreateOptions{
				Config:     &container.Config{Image: testImage, Cmd: []string{"sleep", "infinity"}, Labels: h.labels(nil)},
				HostConfig: &container.HostConfig{Init: &yes, NetworkMode: "none"},
			})
			noError(b, err)
			h.id = created.ID
			noError(b, h.start(b.Context()))
			exec, err := d.ExecCreate(b.Context(), h.id, client.ExecCreateOptions{AttachStdout: true, Cmd: []string{"sh", "-c", ":"}})
			noError(b, err)
			attached, err := d.ExecAttach(b.Context(), exec.ID, client.ExecAttachOptions{})
			noError(b, err)
			io.Copy(io.Discard, attached.Reader)
			attached.Close()
			b.StopTimer()
			noError(b, h.remove(b.Context()))
			b.StartTimer()
		}
	})
	benchmarkHost(b, containerOf(b, nil).host)
}
