package containers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/service/place"
)

// Usage implements place.Place.
func (p *Place) Usage(ctx context.Context, handle string) (*place.Use, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	r, err := e.ContainerStats(ctx, handle, client.ContainerStatsOptions{})
	if err != nil {
		return nil, wrap("ask what the container uses", err)
	}
	defer r.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&s); err != nil {
		return nil, fmt.Errorf("ask what the container uses: %w", err)
	}
	inspected, err := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{Size: true})
	if err != nil {
		return nil, wrap("ask what the container uses", err)
	}
	// Cached files that no program reads do not count: docker stats subtracts them too. Their name
	// is total_inactive_file in cgroup v1, and inactive_file in v2.
	cache := max(s.MemoryStats.Stats["total_inactive_file"], s.MemoryStats.Stats["inactive_file"])
	u := &place.Use{
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
	u.OOMKills = countOOM(ctx, e, handle, inspected.Container.State, s.Read)
	return u, nil
}

// countOOM counts the engine's oom events from the container's start to now, by the engine's clock.
// The engine keeps its last 256 events only, so the count is a lower bound.
func countOOM(ctx context.Context, e *docker.Engine, handle string, state *container.State,
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
