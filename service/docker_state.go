package service

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	checkpoints "github.com/moby/moby/api/types/checkpoint"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
)

// restart starts a container that has ended: of the checkpoint if there is one, and else with its
// files alone.
//
// A start of a checkpoint fails one time in seven on Docker 20.10, with "content digest …: not
// found" (moby#42900), and works when it is tried again.
func restart(ctx context.Context, e *docker.Engine, handle, checkpoint string) (Kept, error) {
	const attempts = 5
	for attempt := 1; checkpoint != ""; attempt++ {
		_, err := e.ContainerStart(ctx, handle, client.ContainerStartOptions{
			CheckpointID: checkpoint})
		if err == nil {
			_, err = e.CheckpointRemove(ctx, handle, client.CheckpointRemoveOptions{
				CheckpointID: checkpoint})
			return KeptAll, err
		}
		list, looked := e.CheckpointList(ctx, handle, client.CheckpointListOptions{})
		if looked == nil && !slices.ContainsFunc(list.Items, func(c checkpoints.Summary) bool {
			return c.Name == checkpoint
		}) {
			break // it was started of already, and has ended since
		}
		if attempt == attempts || !strings.Contains(err.Error(), "content digest") {
			return KeptNothing, err
		}
	}
	_, err := e.ContainerStart(ctx, handle, client.ContainerStartOptions{})
	return KeptFiles, err
}

// Suspend implements Place, by the engine's checkpoint. That exists only in an engine that was
// started with --experimental, and works with gVisor's runsc of 2026. runc leaves it to criu, which
// fails on kernels that are newer than it.
func (p *dockerPlace) Suspend(ctx context.Context, handle string) (string, error) {
	e, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	info, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the engine what it can: %w", err)
	}
	if !info.Info.ExperimentalBuild {
		return "", fmt.Errorf("%w: the engine makes checkpoints only if dockerd is started with "+
			"--experimental", errors.ErrUnsupported)
	}
	checkpoint := "sandshell-" + strings.ToLower(rand.Text()[:12])
	_, err = e.CheckpointCreate(ctx, handle, client.CheckpointCreateOptions{
		CheckpointID: checkpoint, Exit: true})
	switch {
	case err == nil:
		return checkpoint, p.ended(ctx, e, handle)
	case errdefs.IsNotFound(err), ctx.Err() != nil:
		return "", found("suspend the container", err)
	}
	inspected, looked := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
	if looked != nil || inspected.Container.HostConfig == nil || inspected.Container.State == nil ||
		!inspected.Container.State.Running {
		return "", fmt.Errorf("suspend the container: %w", errors.Join(err, looked))
	}
	// It runs on. The runtime's refusal is no failure of the engine.
	return "", fmt.Errorf("%w: the runtime %q makes no checkpoint of this container: %v",
		errors.ErrUnsupported, inspected.Container.HostConfig.Runtime, err)
}

// ended waits until the container is not running any more.
func (p *dockerPlace) ended(ctx context.Context, e *docker.Engine, handle string) error {
	waiting := e.ContainerWait(ctx, handle, client.ContainerWaitOptions{
		Condition: container.WaitConditionNotRunning})
	select {
	case <-waiting.Result:
		return nil
	case err := <-waiting.Error:
		return found("wait for the container's end", err)
	}
}

// snapshotRepository is the name of the images that Snapshot makes.
const snapshotRepository = "sandshell-snapshot"

// Snapshot implements Place. The engine takes what the configuration does not set from the
// container; so it sets user, directory, main process and labels, which in the container are the
// box's.
func (p *dockerPlace) Snapshot(ctx context.Context, handle string) (string, error) {
	e, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	inspected, err := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
	if err != nil {
		return "", found("look at the container", err)
	}
	c := inspected.Container
	base, err := e.ImageInspect(ctx, c.Image)
	if err != nil {
		return "", fmt.Errorf("look at the box's image: %w", err)
	}
	config := &container.Config{Labels: map[string]string{}}
	of := map[string]string{}
	if b := base.Config; b != nil {
		config.User, config.WorkingDir = b.User, b.WorkingDir
		config.Entrypoint, config.Cmd = append([]string{}, b.Entrypoint...), b.Cmd
		of = b.Labels
	}
	for label := range c.Config.Labels {
		config.Labels[label] = of[label] // of the image, or empty: a commit can take none away
	}
	name := snapshotRepository + ":" + strings.ToLower(rand.Text())
	if err := e.CommitAs(ctx, handle, name, "sandshell: the files of box "+
		strings.TrimPrefix(c.Name, "/"), config); err != nil {
		return "", found("make an image of the container", err)
	}
	if s := c.State; s != nil && s.Running && !s.Paused {
		docker.Settle(ctx, e.Client, handle) // the engine has paused it meanwhile
	}
	return name, nil
}

// Usage implements Place.
func (p *dockerPlace) Usage(ctx context.Context, handle string) (*Use, error) {
	e, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	r, err := e.ContainerStats(ctx, handle, client.ContainerStatsOptions{})
	if err != nil {
		return nil, found("ask what the container uses", err)
	}
	defer r.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&s); err != nil {
		return nil, fmt.Errorf("ask what the container uses: %w", err)
	}
	inspected, err := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{Size: true})
	if err != nil {
		return nil, found("ask what the container uses", err)
	}
	// The cache of files that nobody uses is not what the programs use: docker stats subtracts it
	// too. The names are those of cgroup v1 and v2.
	cache := max(s.MemoryStats.Stats["total_inactive_file"], s.MemoryStats.Stats["inactive_file"])
	u := &Use{
		CPU: time.Duration(s.CPUStats.CPUUsage.TotalUsage), MemoryLimit: int64(s.MemoryStats.Limit),
		Memory: int64(s.MemoryStats.Usage) - min(int64(cache), int64(s.MemoryStats.Usage)),
		PIDs:   int64(s.PidsStats.Current),
	}
	if limit := inspected.Container.HostConfig.PidsLimit; limit != nil && *limit > 0 {
		u.PIDsLimit = *limit
	}
	if size := inspected.Container.SizeRw; size != nil {
		u.Disk = *size
	}
	state := inspected.Container.State
	u.OOMKills = kills(ctx, e, handle, state, s.Read)
	return u, nil
}

// kills counts the engine's events, of which it keeps the last 256, from the container's start to
// now, by the engine's clock.
func kills(ctx context.Context, e *docker.Engine, handle string, state *container.State,
	now time.Time) (n int) {
	if state == nil {
		return 0
	}
	since, err := time.Parse(time.RFC3339Nano, state.StartedAt)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		events := e.Events(ctx, client.EventsListOptions{
			Since:   fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()),
			Until:   fmt.Sprintf("%d.%09d", now.Unix(), now.Nanosecond()),
			Filters: client.Filters{}.Add("container", handle).Add("event", "oom"),
		})
		for more := true; more; {
			select {
			case <-events.Messages:
				n++
			case <-events.Err:
				more = false
			}
		}
	}
	if n == 0 && state.OOMKilled {
		n = 1
	}
	return n
}
