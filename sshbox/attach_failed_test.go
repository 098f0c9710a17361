package sshbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
)

// TestAttachFails shows that an Attach that fails ends neither the box nor what runs in it, even if
// the box is not kept. The next Attach finds all of it.
func TestAttachFails(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	r, err := box.Execute(ctx, "X=kept; echo $$")
	noError(t, err)
	shell := strings.TrimSpace(r.Output)
	job, err := box.Background(ctx, "echo ready; read -r x; echo got $x")
	noError(t, err)
	waitFor(t, "the job's log", func() bool {
		data, _, err := job.Logs(ctx, 0)
		return err == nil && string(data) == "ready\n"
	})
	execInside := func(script string) { // by the engine, without the box's owner
		t.Helper()
		created, err := d.ExecCreate(ctx, box.ContainerID(),
			client.ExecCreateOptions{AttachStdout: true, Cmd: []string{"sh", "-c", script}})
		noError(t, err)
		attached, err := d.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
		noError(t, err)
		defer attached.Close()
		attached.Reader.ReadByte() // returns when the script, which prints nothing, ends
	}
	execInside("kill -STOP " + shell) // it does not come back to its prompt
	soon, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if other, err := (Engine{}).Attach(soon, box.ContainerID()); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Fatalf("Attach: %v, %v", other, err)
	}
	execInside("kill -CONT " + shell)

	other, err := Engine{}.Attach(ctx, box.ContainerID())
	noError(t, err)
	defer other.Close()
	r, err = other.Execute(ctx, "echo $X $$")
	noError(t, err)
	// The process that stopped the shell may have read its commands and answered in its place.
	// Therefore the session gets a new shell.
	if !r.Restarted || strings.Contains(r.Output, shell) {
		t.Errorf("the shell that was stopped has not been replaced: %+v", r)
	}
	jobs := other.Jobs()
	if len(jobs) != 1 {
		t.Fatalf("%d jobs", len(jobs))
	}
	noError(t, jobs[0].Input(ctx, "it\n"))
	r, err = jobs[0].Wait(ctx)
	noError(t, err)
	if r.Output != "ready\nit\ngot it\n" {
		t.Errorf("the job printed %q", r.Output)
	}
}

// TestDetachRefused shows that Detach from a box without Keep is an error, and the box stays open.
func TestDetachRefused(t *testing.T) {
	t.Parallel()
	testEngine(t)
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	if err := box.Detach(); err == nil || !strings.Contains(err.Error(), "make it with Keep") {
		t.Errorf("Detach: %v", err)
	}
	r, err := box.Execute(ctx, "echo open")
	wantExited(t, r, err, "open\n")
	noError(t, box.Close())
	if err := box.Detach(); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Detach after Close: %v", err)
	}
}
