package sshbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestDockerOutsideOfDocker runs a program in a container that has the engine's socket. The program
// makes boxes beside its own container, as programs do in CI and in services.
func TestDockerOutsideOfDocker(t *testing.T) {
	testenv.NeedsAll(t, "it builds a program")
	d := testEngine(t)
	needImage(t, testImage)
	socket, ok := strings.CutPrefix(d.DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine at %s is not reached through a socket", d.DaemonHost())
	}
	program := filepath.Join(t.TempDir(), "inside")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./testdata/inside")
	build.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	// With the host's network, a container has the host's name too.
	for _, network := range []container.NetworkMode{"none", "host"} {
		t.Run(string(network), func(t *testing.T) {
			outer := outerContainer(t, d, network, socket, program)
			ctx := testContext(t)
			_, err := d.ContainerStart(ctx, outer, client.ContainerStartOptions{})
			noError(t, err)
			reaping, reaped := context.WithCancel(ctx)
			// Reap here as another program does that does not see the container's processes. It
			// must leave the boxes of the program inside alone.
			go func() {
				defer reaped()
				waiting := d.ContainerWait(ctx, outer, client.ContainerWaitOptions{
					Condition: container.WaitConditionNotRunning})
				select {
				case <-waiting.Result:
				case <-waiting.Error:
				}
			}()
			for reaping.Err() == nil {
				Engine{}.Reap(reaping)
			}
			inspected, err := d.ContainerInspect(ctx, outer, client.ContainerInspectOptions{})
			noError(t, err)
			if printed := containerLogs(t, d, outer); printed != "all is well\n" ||
				inspected.Container.State.ExitCode != 0 {
				t.Errorf("the program ended with %d and printed %s",
					inspected.Container.State.ExitCode, printed)
			}
			boxes, err := Engine{}.List(ctx)
			noError(t, err)
			for _, b := range boxes {
				if strings.HasPrefix(b.Owner.Host, inspected.Container.Config.Hostname+" ") &&
					network == "none" {
					t.Errorf("the program has left a box: %+v", b)
				}
			}
		})
	}
}

// outerContainer makes a container that runs a program, with the engine's socket.
func outerContainer(t *testing.T, d *client.Client, network container.NetworkMode, socket,
	program string) (id string) {
	t.Helper()
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: testImage, User: "0", Entrypoint: []string{"/inside"},
			Cmd: []string{testImage}},
		HostConfig: &container.HostConfig{NetworkMode: network,
			Binds: []string{socket + ":/var/run/docker.sock", program + ":/inside:ro"}},
	})
	noError(t, err)
	t.Cleanup(func() {
		_, err := d.ContainerRemove(context.Background(), created.ID,
			client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		noError(t, err)
	})
	return created.ID
}
