package sshbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// TestContainerCancelled cancels New at several moments. No container is left.
func TestContainerCancelled(t *testing.T) {
	testenv.NeedsAll(t, "it cancels a dozen starts")
	testEngine(t)
	step := 29 * time.Millisecond
	if testenv.Full() {
		step = 13 * time.Millisecond
	}
	for d := time.Duration(0); d < 400*time.Millisecond; d += step {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		h, err := makeContainer(ctx, Config{Image: testImage, Network: "none"})
		cancel()
		if err == nil {
			noError(t, h.Close())
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", d, err)
		}
		noContainers(t)
	}
}

func TestContainerStartTimeout(t *testing.T) {
	err := wantRefused(t, Config{Image: testImage, Network: "none",
		StartTimeout: 100 * time.Millisecond}, "100ms")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestContainerLost ends a container in several ways. Lost returns the reason and the cause.
func TestContainerLost(t *testing.T) {
	d := testEngine(t)
	podman := dockertest.Podman(t, d)
	causeOfStop := sandbox.LostRemoved
	if podman { // Podman does not say that it was asked to stop the container
		causeOfStop = sandbox.LostEnded
	}
	stopTimeout := 10 // seconds: the default of Docker. Podman's default is to kill at once
	running := func(t *testing.T, change func(*Config)) (*dockerHost, shellbox.Process) {
		h := testContainer(t, change)
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sleep", "60"},
			Terminal: &shellbox.Terminal{Rows: 24, Cols: 80}})
		noError(t, err)
		t.Cleanup(func() { p.Close() })
		return h, p
	}
	expectLost := func(t *testing.T, h *dockerHost, p shellbox.Process, want string,
		causes ...sandbox.LostCause) {
		t.Helper()
		if p != nil {
			// Before a box ends on request, boxd signals its programs. Their statuses may come in
			// time.
			if status, err := p.Wait(); err == nil &&
				!(strings.Contains(want, "ended") && status.Signal != 0) {
				t.Errorf("a program of a lost container ended with %+v", status)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
		defer cancel()
		err := h.Lost(ctx)
		var e *sandbox.LostError
		if !errors.As(err, &e) || e.Box != "DockerSSHBox" || !strings.Contains(e.Reason, want) ||
			!slices.Contains(causes, e.Cause) {
			t.Errorf("got %#v, want %q, %q", err, want, causes)
		}
		if _, err := h.Start(ctx, sh("true")); !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("Start: %v", err)
		}
		noError(t, h.Close())
	}
	t.Run("removed", func(t *testing.T) {
		h, p := running(t, nil)
		_, err := d.ContainerRemove(t.Context(), h.container.ID,
			client.ContainerRemoveOptions{Force: true})
		noError(t, err)
		expectLost(t, h, p, "removed", sandbox.LostRemoved)
	})
	t.Run("killed", func(t *testing.T) {
		h, p := running(t, nil)
		_, err := d.ContainerKill(t.Context(), h.container.ID,
			client.ContainerKillOptions{Signal: "KILL"})
		noError(t, err)
		expectLost(t, h, p, "killed", sandbox.LostRemoved)
	})
	t.Run("killed on its machine", func(t *testing.T) {
		h, p := running(t, nil)
		inspected, err := d.ContainerInspect(t.Context(), h.container.ID,
			client.ContainerInspectOptions{})
		noError(t, err)
		pid := inspected.Container.State.Pid
		if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); !strings.Contains(
			string(command), "boxd") || os.Getuid() != 0 {
			t.Skip("this test cannot kill the container's process: use an engine on this " +
				"machine, as root")
		}
		noError(t, exec.Command("kill", "-KILL", strconv.Itoa(pid)).Run())
		if podman { // Podman reports this like a container that it has removed
			expectLost(t, h, p, "killed", sandbox.LostRemoved)
			return
		}
		expectLost(t, h, p, "the engine does not say by whom: the kernel, for want of memory (the "+
			"machine's memory)", sandbox.LostUnknown)
	})
	t.Run("stopped", func(t *testing.T) {
		h, p := running(t, nil)
		_, err := d.ContainerStop(t.Context(), h.container.ID,
			client.ContainerStopOptions{Timeout: &stopTimeout})
		noError(t, err)
		expectLost(t, h, p, "the container ended with status", causeOfStop)
	})
	t.Run("ended from inside", func(t *testing.T) {
		h, p := running(t, nil)
		// With the box, the status of this program may be lost, or the news that it has started.
		killer, err := h.Start(t.Context(), sh("kill -TERM 1"))
		if err == nil {
			t.Cleanup(func() { killer.Close() })
		} else if !errors.Is(err, sandbox.ErrLost) {
			t.Fatal(err)
		}
		expectLost(t, h, p, "the container ended with status", sandbox.LostEnded)
	})
	t.Run("restarted", func(t *testing.T) {
		// With Keep, because the engine removes other containers as soon as they end.
		h, p := running(t, func(c *Config) { c.Keep = true })
		_, err := d.ContainerRestart(t.Context(), h.container.ID,
			client.ContainerRestartOptions{Timeout: &stopTimeout})
		noError(t, err)
		// The reason depends on when the container is inspected. It is that the container ended
		// with status 0, or that what ran in it has ended.
		expectLost(t, h, p, "ended", causeOfStop, sandbox.LostRemoved)
	})
	t.Run("out of memory", func(t *testing.T) {
		if podman {
			t.Skip("Podman does not say that memory ran out")
		}
		h := testContainer(t, func(c *Config) { c.Memory = 24 << 20 })
		// If programs use up the memory, the kernel kills them first, and the box lives. Therefore
		// boxd itself must use it up: it buffers the output of programs that nobody reads.
		for range 200 {
			if _, err := h.Start(t.Context(), sh("cat /dev/zero")); err != nil {
				break
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
		defer cancel()
		if err := h.Lost(ctx); !errors.Is(err, sandbox.ErrLost) {
			t.Fatalf("the box is not lost: %v", err)
		}
		missed, err := dockertest.MissedOutOfMemory(t.Context(), d, h.container.ID)
		noError(t, err)
		if missed {
			expectLost(t, h, nil, "by whom: the kernel, for want of memory (its 24 MiB)",
				sandbox.LostUnknown)
		} else {
			expectLost(t, h, nil, "out of memory: the container used up its 24 MiB",
				sandbox.LostMemory)
		}
	})
	t.Run("paused", func(t *testing.T) {
		h, p := running(t, nil)
		if err := h.Lost(t.Context()); err != nil {
			t.Errorf("Lost of a running box: %v", err)
		}
		err := docker.Pause(t.Context(), d, h.container.ID)
		noError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := h.Lost(ctx); err != nil {
			t.Errorf("Lost of a paused box: %v", err)
		}
		if _, err := h.Start(ctx, sh("true")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start: %v", err)
		}
		_, err = d.ContainerUnpause(t.Context(), h.container.ID, client.ContainerUnpauseOptions{})
		noError(t, err)
		if r := run(t, h, sh("echo alive")); r.Stdout != "alive\n" {
			t.Errorf("got %+v", r)
		}
		p.Close()
	})
	t.Run("closed while paused", func(t *testing.T) {
		h, _ := running(t, nil)
		err := docker.Pause(t.Context(), d, h.container.ID)
		noError(t, err)
		begin := time.Now()
		noError(t, h.Close())
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("Close took %v", d)
		}
		noContainers(t)
	})
}

// TestContainerSweep shows that making a box removes the containers of processes that have ended,
// and leaves those of processes that are running.
func TestContainerSweep(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	dead := exec.Command("true")
	noError(t, dead.Run())
	host := remotebox.HostID()
	left := map[int]string{dead.Process.Pid: "", os.Getppid(): ""}
	for pid := range left {
		created, err := d.ContainerCreate(t.Context(),
			client.ContainerCreateOptions{Config: &container.Config{
				Image: testImage, Cmd: []string{"true"},
				Labels: map[string]string{"sandshell.box": "x", "sandshell.host": host,
					"sandshell.pid": strconv.Itoa(pid)}}})
		noError(t, err)
		left[pid] = created.ID
		t.Cleanup(func() {
			d.ContainerRemove(context.Background(), created.ID,
				client.ContainerRemoveOptions{Force: true})
		})
	}
	exists := func(pid int) bool {
		_, err := d.ContainerInspect(t.Context(), left[pid], client.ContainerInspectOptions{})
		return err == nil
	}
	h := testContainer(t, nil)
	waitFor(t, "the sweep", func() bool { return !exists(dead.Process.Pid) })
	noError(t, h.Close())
	if !exists(os.Getppid()) {
		t.Error("the container of a running process was removed")
	}
}

func TestContainerClose(t *testing.T) {
	h := testContainer(t, nil)
	p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"cat", "/dev/zero"}})
	noError(t, err)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { noError(t, h.Close()) })
	}
	wg.Wait()
	p.Close()
	if _, err := h.Start(t.Context(), sh("true")); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Start: %v", err)
	}
	noContainers(t)
}

// TestStopping shows that a command that ends while its box is ending has no result. The error says
// that the box is lost.
func TestStopping(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	box, err := New(t.Context(), Config{Image: dockertest.Busybox, Network: "none"})
	noError(t, err)
	defer box.Close()
	res, err := box.Execute(t.Context(),
		`sh -c 'trap "" TERM HUP; kill -INT 1; sleep 0.5; echo result'`)
	var lost *sandbox.LostError
	if !errors.As(err, &lost) || lost.Cause != sandbox.LostEnded {
		t.Errorf("got %+v, %v", res, err)
	}
}
