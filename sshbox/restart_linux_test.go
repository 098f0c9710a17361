//go:build linux

package sshbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/enginetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// TestEngineRestarts kills the engine and starts it again. With live-restore its containers keep
// running, and sessions and jobs lose no output.
func TestEngineRestarts(t *testing.T) {
	testenv.NeedsAll(t, "it starts an engine of its own, three times")
	e := enginetest.Start(t, enginetest.Config{LiveRestore: true})
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.Client})
	noError(t, err)
	defer box.Close()
	_, err = box.Execute(ctx, "X=1")
	noError(t, err)
	j, err := box.Background(ctx, "i=0; while [ $i -lt 60 ]; do echo $((i+=1)); sleep 0.1; done")
	noError(t, err)
	type outcome struct {
		r   *sandbox.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := box.Execute(ctx, "i=0; while [ $i -lt 50 ]; do echo line $((i+=1)); sleep 0.1; "+
			"done")
		done <- outcome{r, err}
	}()
	time.Sleep(500 * time.Millisecond)
	e.Restart(t, time.Second)
	var want, jobWant strings.Builder
	for i := 1; i <= 60; i++ {
		if i <= 50 {
			fmt.Fprintln(&want, "line", i)
		}
		fmt.Fprintln(&jobWant, i)
	}
	o := <-done
	wantExited(t, o.r, o.err, want.String())
	r, err := box.Execute(ctx, "echo $X")
	wantExited(t, r, err, "1\n")
	r, err = j.Wait(ctx)
	wantExited(t, r, err, jobWant.String())

	// If the engine does not come back, the box is lost after Linger.
	short, err := New(ctx, Config{Image: bareImage, Network: "none", Docker: e.Client,
		Linger: 2 * time.Second})
	noError(t, err)
	e.Kill(t)
	begin := time.Now()
	_, err = short.Execute(ctx, "sleep 100")
	var lost *sandbox.LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "engine") ||
		lost.Cause != sandbox.LostConnection {
		t.Errorf("without an engine: %v (%+v)", err, lost)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("the loss was noticed after %v", d)
	}
	e.Start(t)
	noError(t, short.Close())
	r, err = box.Execute(ctx, "echo $X")
	wantExited(t, r, err, "1\n")
	noError(t, box.Close())
	e.WantEmpty(t)
}
