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

// An Attach that fails leaves the box and what runs in it, also when the box would end by itself;
// the next Attach finds all of it.
func TestAttachFails(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	ctx := limit(t)
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
	inside := func(script string) { // without the box's owner
		t.Helper()
		created, err := d.ExecCreate(ctx, box.ContainerID(),
			client.ExecCreateOptions{AttachStdout: true, Cmd: []string{"sh", "-c", script}})
		noError(t, err)
		attached, err := d.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
		noError(t, err)
		defer attached.Close()
		attached.Reader.ReadByte() // to its end: it prints nothing
	}
	inside("kill -STOP " + shell) // it does not come back to its prompt
	soon, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if other, err := (Engine{}).Attach(soon, box.ContainerID()); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Fatalf("Attach: %v, %v", other, err)
	}
	inside("kill -CONT " + shell)

	other, err := Engine{}.Attach(ctx, box.ContainerID())
	noError(t, err)
	defer other.Close()
	r, err = other.Execute(ctx, "echo $X $$")
	noError(t, err)
	// Whoever stopped the shell may have taken its commands and answered in its place: it is
	// replaced.
	if !r.Restarted || strings.Contains(r.Output, shell) {
		t.Errorf("the shell that was stopped answers: %+v", r)
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

// Whoever reaches the Box inside of a DockerSSHBox is refused too, and the box stays open.
func TestDetachRefused(t *testing.T) {
	t.Parallel()
	testEngine(t)
	ctx := limit(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	for _, detach := range []func() error{box.Detach, box.Box.Detach} {
		if err := detach(); err == nil || !strings.Contains(err.Error(), "make it with Keep") {
			t.Errorf("Detach: %v", err)
		}
	}
	r, err := box.Execute(ctx, "echo open")
	exited(t, r, err, "open\n")
	noError(t, box.Close())
	if err := box.Detach(); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Detach after Close: %v", err)
	}
}
