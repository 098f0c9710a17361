// Package dockertest gives tests the Docker engine and its test images.
package dockertest

import (
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// The images that "make image" makes.
const (
	Image = "sandshell-test:latest" // Debian, with bash, python3 and much else
	// busybox, and nothing else: no bash, no tar, no /etc/passwd
	Busybox = "sandshell-busybox:latest"
	Shell   = "sandshell-shell:latest" // a shell, and nothing else
)

// Engine returns a client of the engine. If there is no engine or no such image, it skips the test,
// or fails it if SANDSHELL_REQUIRE_DOCKER is 1.
func Engine(t testing.TB, images ...string) *client.Client {
	t.Helper()
	fail := t.Skipf
	if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
		fail = t.Fatalf
	}
	engine, err := client.New(client.FromEnv)
	require.NoError(t, err)
	t.Cleanup(func() { engine.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	for _, image := range images {
		if _, err := engine.ImageInspect(ctx, image); err != nil {
			fail("no engine, or no image %s (make image): %v", image, err)
		}
	}
	return engine
}

// Podman reports whether the engine is Podman, which speaks Docker's API. README.md says what
// differs.
func Podman(t testing.TB, engine *client.Client) bool {
	v, err := engine.ServerVersion(t.Context(), client.ServerVersionOptions{})
	require.NoError(t, err)
	return slices.ContainsFunc(v.Components, func(c system.ComponentVersion) bool {
		return c.Name == "Podman Engine"
	})
}

// Containers returns the names of the containers that this process has made and not removed.
func Containers(ctx context.Context) ([]string, error) {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	list, err := c.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label",
			"sandshell.pid="+strconv.Itoa(os.Getpid()))})
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Names...)
	}
	return names, err
}

// NoContainers fails the test if this process has containers.
func NoContainers(t testing.TB) {
	t.Helper()
	names, err := Containers(t.Context())
	require.NoError(t, err)
	if len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// MissedOutOfMemory reports whether the engine has missed that a container ran out of memory.
// containerd loses the kernel's event if the cgroup is gone before it reads the event. With ten
// busy loops beside it, that happened in 1 of 150 ends.
func MissedOutOfMemory(ctx context.Context, d *client.Client, id string) (bool, error) {
	result := d.Events(ctx, client.EventsListOptions{
		Since: "0", Until: strconv.FormatInt(time.Now().Unix()+1, 10),
		Filters: client.Filters{}.Add("container", id).Add("event", "oom"),
	})
	for {
		select {
		case <-result.Messages:
			return false, nil
		case err := <-result.Err:
			if err == io.EOF {
				return true, nil
			}
			return false, err
		}
	}
}

// RemoveImage removes an image when the test ends.
func RemoveImage(t testing.TB, d *client.Client, name string) {
	t.Cleanup(func() {
		d.ImageRemove(context.Background(), name, client.ImageRemoveOptions{Force: true,
			PruneChildren: true})
	})
}
