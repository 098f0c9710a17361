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

// An onFirstWrite is a writer that runs call at its first Write.
type onFirstWrite struct {
	once    sync.Once
	call    func()
	written int
}

func (c *onFirstWrite) Write(p []byte) (int, error) {
	c.once.Do(c.call)
	c.written += len(p)
	return len(p), nil
}

// TestOutputCutShort loses the box after a program has succeeded and before all of its output has
// come. Run returns an error.
func TestOutputCutShort(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none"})
	noError(t, err)
	defer box.Close()
	ended := func() bool {
		// When this Run has returned, the status of the first program has come too.
		code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"pgrep", "-x", "head"}})
		noError(t, err)
		return code != 0
	}
	out := &onFirstWrite{call: func() {
		waitFor(t, "the program's end", ended)
		_, err := d.ContainerRemove(ctx, box.ContainerID(),
			client.ContainerRemoveOptions{Force: true})
		noError(t, err)
		waitFor(t, "the box to be lost", func() bool {
			_, err := box.Run(context.Background(), &sandbox.Cmd{Args: []string{"true"}})
			return errors.Is(err, sandbox.ErrLost)
		})
	}}
	const size = 400 << 10 // boxd buffers this much of a program whose output nobody reads
	code, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"head", "-c", strconv.Itoa(size),
		"/dev/zero"}, Stdout: out})
	if !errors.Is(err, sandbox.ErrLost) && out.written < size {
		t.Errorf("%d of %d bytes have come, status %d, %v", out.written, size, code, err)
	}
	if out.written == size {
		t.Error("all of the output has come: the box was lost too late")
	}
}

// cutCopies cuts the connection at the moment at which a copy starts. The copy succeeds, or fails
// with ErrCut. The box stays open.
func cutCopies(t *testing.T, proxy *engineProxy, box *DockerSSHBox) {
	ctx := testContext(t)
	dir := t.TempDir()
	for range 40 {
		var cut sync.WaitGroup
		cut.Go(proxy.Cut)
		err := box.CopyFrom(ctx, "/etc/hostname", dir)
		cut.Wait()
		if err != nil && !errors.Is(err, sandbox.ErrCut) {
			t.Fatal(err)
		}
	}
}

// TestCopyFromPaused shows that a copy from a paused box returns when its ctx ends.
func TestCopyFromPaused(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	box, err := New(testContext(t), Config{Image: testImage, Network: "none"})
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
	// If it took longer, it returned because keepalive had noticed a silent connection.
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("CopyFrom took %v", took)
	}
	_, err = d.ContainerUnpause(t.Context(), box.ContainerID(), client.ContainerUnpauseOptions{})
	noError(t, err)
}

// TestCutCopyInOutage shows that a copy that an outage has cut returns ErrCut, when the box answers
// again or after some seconds. It does not return the error of a context.
func TestCutCopyInOutage(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "the outage lasts longer than a question about the box: TestCut cuts "+
		"copies every day")
	proxy := newEngineProxy(t)
	box := proxy.box(t, nil)
	ctx := testContext(t)
	_, err := box.Execute(ctx, "head -c 200M /dev/zero >/tmp/big")
	noError(t, err)
	copied := make(chan error)
	go func() { copied <- box.CopyFrom(ctx, "/tmp/big", filepath.Join(t.TempDir(), "big")) }()
	before := proxy.Passed()
	waitFor(t, "the copy", func() bool { return proxy.Passed() > before+1<<20 })
	proxy.Unplug(true)
	err = <-copied
	if !errors.Is(err, sandbox.ErrCut) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("CopyFrom: %v", err)
	}
	proxy.Unplug(false)
	noError(t, box.CopyFrom(ctx, "/etc/hostname", filepath.Join(t.TempDir(), "small")))
}
