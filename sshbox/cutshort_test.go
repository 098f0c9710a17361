package sshbox

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// A writer that calls first at its first Write.
type calling struct {
	once  sync.Once
	first func()
	n     int
}

func (c *calling) Write(p []byte) (int, error) {
	c.once.Do(c.first)
	c.n += len(p)
	return len(p), nil
}

// A program has ended well, but the box is lost before all of its output has come: Run says so.
func TestOutputCutShort(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	ctx := limit(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	ended := func() bool {
		// behind it the program's status has come, too
		code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"pgrep", "-x", "head"}})
		noError(t, err)
		return code != 0
	}
	out := &calling{first: func() {
		waitFor(t, "the program's end", ended)
		_, err := d.ContainerRemove(ctx, box.ContainerID(),
			client.ContainerRemoveOptions{Force: true})
		noError(t, err)
		waitFor(t, "the box to be lost", func() bool {
			_, err := box.Run(context.Background(), &sandbox.Cmd{Args: []string{"true"}})
			return errors.Is(err, sandbox.ErrLost)
		})
	}}
	const size = 400 << 10 // boxd takes as much from a program whose output nobody reads
	code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"head", "-c", strconv.Itoa(size),
		"/dev/zero"}, Stdout: out})
	if !errors.Is(err, sandbox.ErrLost) && out.n < size {
		t.Errorf("%d bytes of %d have come, status %d, %v", out.n, size, code, err)
	}
	if out.n == size {
		t.Error("all has come: the box was not lost in between")
	}
}

// Copies at the very moment of a cut: they are made, or cut; the box is open all the time.
func cutCopies(t *testing.T, c *cable, box *DockerSSHBox) {
	ctx := limit(t)
	dir := t.TempDir()
	for range 40 {
		var cut sync.WaitGroup
		cut.Go(c.Cut)
		err := box.CopyFrom(ctx, "/etc/hostname", dir)
		cut.Wait()
		if err != nil && !errors.Is(err, sandbox.ErrCut) {
			t.Fatal(err)
		}
	}
}

// A copy from a box that is paused heeds its ctx at once.
func TestCopyFromPaused(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	box, err := New(limit(t), Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	err = docker.Pause(t.Context(), d, box.ContainerID())
	noError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := box.CopyFrom(ctx, "/etc/hostname", t.TempDir()); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("CopyFrom: %v", err)
	}
	// it was noticed that the connection is silent
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("CopyFrom took %v", took)
	}
	_, err = d.ContainerUnpause(t.Context(), box.ContainerID(), client.ContainerUnpauseOptions{})
	noError(t, err)
}

// A copy that an outage has cut says so when the box can be asked again, or after some seconds: the
// outage is no end of the caller's context.
func TestCutCopyInOutage(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "the outage lasts longer than a question about the box: cuts of copies "+
		"are tried every day")
	c := newCable(t)
	box := c.box(t, nil)
	ctx := limit(t)
	_, err := box.Execute(ctx, "head -c 200M /dev/zero >/tmp/big")
	noError(t, err)
	copied := make(chan error)
	go func() { copied <- box.CopyFrom(ctx, "/tmp/big", filepath.Join(t.TempDir(), "big")) }()
	before := c.Passed()
	waitFor(t, "the copy", func() bool { return c.Passed() > before+1<<20 })
	c.Unplug(true)
	err = <-copied
	if !errors.Is(err, sandbox.ErrCut) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("CopyFrom: %v", err)
	}
	c.Unplug(false)
	noError(t, box.CopyFrom(ctx, "/etc/hostname", filepath.Join(t.TempDir(), "small")))
}
