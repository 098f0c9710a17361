package docker

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/bin"
)

// After Unpause the engine does not tell of the pause again, however late containerd's word of it
// is: where several containers are paused and unpaused at once, it is later than the engine's own
// unpause one time in twenty.
func TestUnpauseSettled(t *testing.T) {
	e := ownEngine(t)
	var containers []*Container
	for range 6 {
		c, err := e.Start(t.Context(), guestSpec(bin.For(runtime.GOARCH), nil))
		noError(t, err)
		c.Answered()
		t.Cleanup(func() { noError(t, c.Remove(context.Background())) })
		containers = append(containers, c)
	}
	var all sync.WaitGroup
	for _, c := range containers {
		all.Go(func() {
			for range 5 {
				err := Pause(t.Context(), e.Client, c.ID)
				if err == nil {
					err = Unpause(t.Context(), e.Client, c.ID)
				}
				for end := time.Now().Add(50 * time.Millisecond); err == nil &&
					time.Now().Before(end); {
					var now client.ContainerInspectResult
					if now, err = e.ContainerInspect(t.Context(), c.ID,
						client.ContainerInspectOptions{}); err == nil &&
						now.Container.State.Paused {
						t.Error("it counts as paused")
						return
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
