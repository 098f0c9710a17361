package sshbox

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// outputsOf returns what a job on pipes has printed, and where each output ends.
func outputsOf(t *testing.T, j sandbox.Job) (out, err string, ends [2]int64) {
	t.Helper()
	var all [2]strings.Builder
	for i, read := range []func(context.Context, int64) ([]byte, int64, error){j.Logs, j.Stderr} {
		for {
			data, next, err := read(t.Context(), ends[i])
			noError(t, err)
			if len(data) == 0 {
				break
			}
			all[i].Write(data)
			ends[i] = next
		}
	}
	return all[0].String(), all[1].String(), ends
}

// wantOutputs waits for the end of a job on pipes, and fails unless it has printed that.
func wantOutputs(t *testing.T, j sandbox.Job, code int, wantOut, wantErr string) {
	t.Helper()
	r, err := j.Wait(testContext(t))
	noError(t, err)
	out, stderr, _ := outputsOf(t, j)
	if r.ExitCode != code || out != wantOut || stderr != wantErr {
		t.Errorf("%s: status %d, %d and %d bytes, want %d, %d and %d: %.60q, %.60q", j.ID(),
			r.ExitCode, len(out), len(stderr), code, len(wantOut), len(wantErr), out, stderr)
	}
}

// TestPipesCut cuts the connection while a job on pipes reads and prints.
func TestPipesCut(t *testing.T) {
	t.Parallel()
	proxy := newEngineProxy(t)
	box, ctx := proxy.box(t, nil), testContext(t)
	j, err := box.Background(ctx, "tee /dev/fd/2; exit 3", sandbox.Pipes())
	noError(t, err)
	piece := strings.Repeat("0123456789abcdef", 20_000)
	var in strings.Builder
	next := proxy.Passed()
	for range 20 {
		in.WriteString(piece)
		noError(t, j.Input(ctx, piece))
		if passed := proxy.Passed(); passed > next {
			proxy.Cut()
			next = passed + int64(rand.IntN(600_000))
		}
	}
	select {
	case <-j.Done():
		t.Fatal("the job has ended before its input")
	case <-time.After(50 * time.Millisecond):
	}
	proxy.Cut()
	noError(t, j.EndInput(ctx))
	proxy.Cut()
	wantOutputs(t, j, 3, in.String(), in.String())
}

// TestPipesAttached detaches from a box with jobs on pipes. The next program finds them.
func TestPipesAttached(t *testing.T) {
	t.Parallel()
	testEngine(t)
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none", Keep: true})
	noError(t, err)
	defer func() { noError(t, box.Close()) }()
	started := map[string]string{}
	start := func(name, command string, opts ...sandbox.SessionOption) sandbox.Job {
		j, err := box.Background(ctx, command, append(opts, sandbox.Pipes())...)
		noError(t, err)
		started[name] = j.ID()
		return j
	}
	noError(t, start("filter", "tee /dev/fd/2; exit 4").Input(ctx, "one\n"))
	// What it prints while nobody is there is more than its logs keep.
	start("long", "until [ -e /tmp/go ]; do sleep 0.01; done; seq -f %049.0f 1 60000; "+
		"seq -f %049.0f 1 60000 >&2; : > /tmp/went", sandbox.MaxLog(2<<20))
	left := start("left", "until [ -e /tmp/went ]; do sleep 0.01; done; cat; exit 5")
	noError(t, left.Input(ctx, strings.Repeat("x", 100_000)))
	noError(t, left.EndInput(ctx)) // is not lost, although Detach follows at once
	start("killed", "sleep 1000")
	forgotten := start("forgotten", "echo forgotten")
	<-forgotten.Done()
	noError(t, forgotten.Forget())
	_, err = box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c",
		"(sleep 0.5; : > /tmp/go) > /tmp/null 2>&1 &"}})
	noError(t, err)

	id := box.ContainerID()
	noError(t, box.Detach())
	time.Sleep(2 * time.Second)
	box, err = Engine{}.Attach(ctx, id)
	noError(t, err)
	if n := len(box.Jobs()); n != len(started)-1 {
		t.Errorf("%d jobs are listed", n)
	}
	job := func(name string) sandbox.Job {
		j, ok := box.Job(started[name])
		if !ok {
			t.Fatalf("the job %s is not found", name)
		}
		return j
	}
	filter := job("filter")
	noError(t, filter.Input(ctx, "two\n"))
	noError(t, filter.EndInput(ctx))
	wantOutputs(t, filter, 4, "one\ntwo\n", "one\ntwo\n")

	long := job("long")
	<-long.Done()
	out, stderr, ends := outputsOf(t, long)
	for i, log := range []string{out, stderr} {
		if len(log) != 2<<20 || ends[i] != 3_000_000 || !strings.HasSuffix(log, "060000\n") {
			t.Errorf("log %d has %d bytes up to %d", i, len(log), ends[i])
		}
	}
	if err := job("left").Input(ctx, "x"); !errors.Is(err, io.ErrClosedPipe) &&
		!errors.Is(err, sandbox.ErrIdle) {
		t.Errorf("Input after EndInput of another program: %v", err)
	}
	wantOutputs(t, job("left"), 5, strings.Repeat("x", 100_000), "")
	noError(t, job("killed").Kill(ctx))
	wantOutputs(t, job("killed"), 129, "", "")
	for _, j := range box.Jobs() {
		noError(t, j.Forget())
	}
	if n := len(box.Jobs()); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
}

// TestPipesJoined has two programs use one job on pipes.
func TestPipesJoined(t *testing.T) {
	t.Parallel()
	testEngine(t)
	ctx := testContext(t)
	box := newBox(t, Config{Image: testImage, Network: "none", Keep: true})
	j, err := box.Background(ctx, "tee /dev/fd/2; exit 6", sandbox.Pipes())
	noError(t, err)
	other := join(t, box)
	if len(box.Jobs()) != 1 { // later it knows by this list that another program has forgotten it
		t.Error("the job is not listed")
	}
	same, ok := other.Job(j.ID())
	if !ok {
		t.Fatal("the other program does not find the job")
	}
	printed := func(text string) func() bool {
		return func() bool {
			for _, of := range []sandbox.Job{j, same} {
				if out, stderr, _ := outputsOf(t, of); out != text || stderr != text {
					return false
				}
			}
			return true
		}
	}
	noError(t, j.Input(ctx, "one\n"))
	waitFor(t, "the first line", printed("one\n"))
	noError(t, same.Input(ctx, "two\n"))
	waitFor(t, "the second line", printed("one\ntwo\n"))
	noError(t, same.EndInput(ctx))
	for _, of := range []sandbox.Job{j, same} {
		wantOutputs(t, of, 6, "one\ntwo\n", "one\ntwo\n")
	}
	noError(t, same.Forget())
	if _, ok := box.Job(j.ID()); ok {
		t.Error("the job that the other program has forgotten is still there")
	}
}
