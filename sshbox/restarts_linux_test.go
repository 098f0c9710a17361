//go:build linux

package sshbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/enginetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// TestEngineRestartsUnderBoxes stops or kills an engine while a box is at work, and starts it
// again. If the engine keeps its containers, all calls succeed. If not, each call soon returns a
// LostError. In both cases no container is left.
func TestEngineRestartsUnderBoxes(t *testing.T) {
	testenv.NeedsAll(t, "it starts engines of its own, as TestEngineRestarts does")
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprint("live-restore=", live), func(t *testing.T) {
			e := enginetest.Start(t, enginetest.Config{LiveRestore: live})
			for name, end := range map[string]func(*testing.T){"stopped": e.Stop,
				"killed": e.Kill} {
				t.Run(name, func(t *testing.T) { restartUnderBox(t, e, end) })
			}
		})
	}
}

// restartUnderBox ends the engine by end, and starts it, while a box has a job and a command
// running.
func restartUnderBox(t *testing.T, e *enginetest.Engine, end func(*testing.T)) {
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.Client})
	noError(t, err)
	defer box.Close()
	_, err = box.Execute(ctx, "X=1")
	noError(t, err)
	j, err := box.Background(ctx, "echo begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo "+
		"done")
	noError(t, err)
	// When the job has printed, it is running, and the engine can be ended.
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
	e.Start(t)
	if e.LiveRestore {
		if _, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"touch", "/tmp/go"}}); err != nil {
			t.Errorf("run: %v", err)
		}
		r, err = box.Wait(ctx)
		wantExited(t, r, err, "1\n")
		r, err = j.Wait(ctx)
		wantExited(t, r, err, "begun\ndone\n")
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
				lost.Cause != sandbox.LostRemoved { // the cause is not the box's programs
				t.Errorf("%s: %v (%+v)", what, err, lost)
			}
		}
		if d := time.Since(back); d > 10*time.Second {
			t.Errorf("the loss was noticed after %v", d)
		}
	}
	noError(t, box.Close())
	_, err = Engine{Docker: e.Client}.Reap(ctx)
	noError(t, err)
	e.WantEmpty(t)
}

// errSignalled is the error of signalled.
var errSignalled = errors.New("a signal ended the command, and its status came in time")

// signalled returns errSignalled if a signal has ended the command. When an engine is stopped, boxd
// ends its programs by signals.
func signalled(r *sandbox.Result, err error) error {
	if err == nil && r.ExitCode > 128 {
		return errSignalled
	}
	return err
}

// TestEngineRestartsUnderStarts kills an engine at several moments of a box's start. Whether New
// fails or succeeds, no container is left when the engine runs again.
func TestEngineRestartsUnderStarts(t *testing.T) {
	testenv.NeedsAll(t, "it starts engines of its own; TestStartFailsWithEngine, which only "+
		"cuts the engine's connection, runs every day")
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprint("live-restore=", live), func(t *testing.T) {
			e := enginetest.Start(t, enginetest.Config{LiveRestore: live})
			// The first box fills boxd's volume.
			first, err := New(t.Context(), Config{Image: bareImage, Network: "none",
				Docker: e.Client})
			noError(t, err)
			noError(t, first.Close())
			// In milliseconds. With this storage driver, create takes about 400, and start and join
			// as long.
			for _, after := range []time.Duration{50, 300, 600, 900, 1300} {
				ctx := testContext(t)
				type made struct {
					box *DockerSSHBox
					err error
				}
				done := make(chan made, 1)
				go func() {
					box, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.Client,
						StartTimeout: 10 * time.Second})
					done <- made{box, err}
				}()
				time.Sleep(after * time.Millisecond)
				e.Kill(t)
				var m made
				// New returns at once, or waits for the engine, which does not answer until it is
				// started.
				select {
				case m = <-done:
					e.Start(t)
				case <-time.After(time.Second):
					e.Start(t)
					m = <-done
				}
				t.Logf("killed after %v: %v", after*time.Millisecond, m.err)
				if m.err == nil {
					if err := m.box.Close(); err != nil {
						t.Logf("close: %v", err)
					}
				}
				_, err := Engine{Docker: e.Client}.Reap(ctx)
				noError(t, err)
				e.WantEmpty(t)
			}
		})
	}
}
