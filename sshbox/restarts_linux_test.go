//go:build linux

package sshbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// empty expects nothing to be left on the engine.
func (e *restartable) empty(t *testing.T) {
	t.Helper()
	left, err := e.client.ContainerList(context.Background(),
		client.ContainerListOptions{All: true})
	noError(t, err)
	for _, c := range left.Items {
		// An engine may go on listing, as dead, what was removed while it was starting; asked for
		// it, it knows of none. (Docker 20.10, on a busy machine.)
		if _, err := e.client.ContainerInspect(context.Background(), c.ID,
			client.ContainerInspectOptions{}); errdefs.IsNotFound(err) {
			t.Logf("listed, and not there: %s, %s", c.ID, c.Status)
			continue
		}
		t.Errorf("left: %v, %s, %s", c.Names, c.State, c.Status)
	}
}

// An engine is stopped, or killed, and started again, with boxes at work. If it keeps its
// containers, nobody notices; if not, every call says that the box is lost, soon, and nothing is
// left.
func TestEngineRestartsUnderBoxes(t *testing.T) {
	testenv.NeedsAll(t, "it starts engines of its own; TestEngineRestarts, which kills one, is "+
		"another")
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprint("live-restore=", live), func(t *testing.T) {
			e := startOwnEngine(t, live)
			for name, end := range map[string]func(*testing.T){"stopped": e.stop,
				"killed": e.kill} {
				t.Run(name, func(t *testing.T) { e.under(t, end) })
			}
		})
	}
}

func (e *restartable) under(t *testing.T, end func(*testing.T)) {
	ctx := limit(t)
	box, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.client})
	noError(t, err)
	defer box.Close()
	_, err = box.Execute(ctx, "X=1")
	noError(t, err)
	j, err := box.Background(ctx, "echo begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo "+
		"done")
	noError(t, err)
	// What the engine's end has to find at work is at work when it has printed.
	begun := func() bool {
		data, _, err := j.Logs(ctx, 0)
		return err == nil && string(data) == "begun\n"
	}
	waitFor(t, "the job", begun)
	r, err := box.Execute(ctx, "while [ ! -e /tmp/go ]; do sleep 0.1; done; echo $X",
		sandbox.Yield(100*time.Millisecond))
	if err != nil || r.State != sandbox.Running {
		t.Fatalf("got %+v, %v", r, err)
	}
	end(t)
	e.start(t)
	if e.live {
		if _, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"touch", "/tmp/go"}}); err != nil {
			t.Errorf("run: %v", err)
		}
		r, err = box.Wait(ctx)
		exited(t, r, err, "1\n")
		r, err = j.Wait(ctx)
		exited(t, r, err, "begun\ndone\n")
	} else {
		back := time.Now()
		for what, call := range map[string]func() error{
			"Wait":     func() error { return signalled(box.Wait(ctx)) },
			"Job.Wait": func() error { return signalled(j.Wait(ctx)) },
			"Run": func() error {
				_, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}})
				return err
			},
			"Open": func() error { _, err := box.Open(ctx); return err },
		} {
			var lost *sandbox.LostError
			if err := call(); err == errSignalled {
				continue
			} else if !errors.As(err, &lost) || lost.Reason == "" ||
				lost.Cause != sandbox.LostRemoved {
				// not the task's doing
				t.Errorf("%s: %v (%+v)", what, err, lost)
			}
		}
		if d := time.Since(back); d > 10*time.Second {
			t.Errorf("it took %v to learn of it", d)
		}
	}
	noError(t, box.Close())
	_, err = Engine{Docker: e.client}.Reap(ctx)
	noError(t, err)
	e.empty(t)
}

var errSignalled = errors.New("the command was ended by a signal, and there was time to tell")

// signalled makes it an error that a command was ended by a signal: an engine that is stopped has
// boxd end its programs so.
func signalled(r *sandbox.Result, err error) error {
	if err == nil && r.ExitCode > 128 {
		return errSignalled
	}
	return err
}

// An engine is killed while a box starts, at any moment of it. Whether New fails, or has just come
// through, nothing is left once the engine is back.
func TestEngineRestartsUnderStarts(t *testing.T) {
	testenv.NeedsAll(t, "it starts engines of its own; TestStartFailsWithEngine, where the "+
		"engine only seems to go, runs every day")
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprint("live-restore=", live), func(t *testing.T) {
			e := startOwnEngine(t, live)
			// fills the volume
			first, err := New(t.Context(), Config{Image: bareImage, Network: "none",
				Docker: e.client})
			noError(t, err)
			noError(t, first.Close())
			// milliseconds: create takes some 400 with this storage driver, start and join as long
			for _, after := range []time.Duration{50, 300, 600, 900, 1300} {
				ctx := limit(t)
				type made struct {
					box *DockerSSHBox
					err error
				}
				done := make(chan made, 1)
				go func() {
					box, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.client,
						StartTimeout: 10 * time.Second})
					done <- made{box, err}
				}()
				time.Sleep(after * time.Millisecond)
				e.kill(t)
				var m made
				// it fails at once, or has come through; or waits for an engine that does not
				// answer
				select {
				case m = <-done:
					e.start(t)
				case <-time.After(time.Second):
					e.start(t)
					m = <-done
				}
				t.Logf("killed after %v: %v", after*time.Millisecond, m.err)
				if m.err == nil {
					if err := m.box.Close(); err != nil {
						t.Logf("close: %v", err)
					}
				}
				_, err := Engine{Docker: e.client}.Reap(ctx)
				noError(t, err)
				e.empty(t)
			}
		})
	}
}
