package docker

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestUnpauseSettled checks that the engine does not report a container as paused after Unpause,
// even if containerd's event of the pause comes late. If several containers are paused and unpaused
// at once, that event comes after the unpause one time in twenty.
func TestUnpauseSettled(t *testing.T) {
	testenv.NeedsAll(t, "it asks the engine without a pause, for seconds: "+
		"TestRemovePausedInBetween pauses a container")
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
						t.Error("the container is paused after Unpause")
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
