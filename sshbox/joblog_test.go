package sshbox

import (
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// TestJobLogInSmallBox shows that a job's log is bounded in the box too: a job that prints more
// than the box's memory is not killed.
func TestJobLogInSmallBox(t *testing.T) {
	t.Parallel()
	testEngine(t)
	box := newBox(t, Config{Image: testImage, Network: "none", ReadOnlyRoot: true,
		Memory: 40 << 20})
	job, err := box.Background(t.Context(), "yes $(printf %01000d 0) | head -c 44000000; exit 3",
		sandbox.MaxLog(1<<20))
	noError(t, err)
	r, err := job.Wait(t.Context())
	noError(t, err)
	if r.ExitCode != 3 || r.OOM {
		t.Errorf("%+v", r)
	}
}

// TestJobWhereTmpIsFull starts a job in a box whose /tmp is full.
func TestJobWhereTmpIsFull(t *testing.T) {
	t.Parallel()
	testEngine(t)
	box := newBox(t, Config{
		Image: testImage, Network: "none", StartLimit: 20 * time.Second,
		Mounts: []Mount{{Type: Tmpfs, Target: "/tmp", Size: 1 << 20}},
	})
	_, err := box.Execute(t.Context(), "cat /dev/zero >/tmp/fill")
	noError(t, err)
	job, err := box.Background(t.Context(), "echo job")
	noError(t, err)
	r, err := job.Wait(t.Context())
	wantExited(t, r, err, "job\n")
}

// TestJobLogAttached shows that MaxLog and Forget still apply after another program has attached.
func TestJobLogAttached(t *testing.T) {
	t.Parallel()
	testEngine(t)
	box, err := New(t.Context(), Config{Image: testImage, Network: "none", Keep: true})
	noError(t, err)
	defer func() { noError(t, box.Close()) }()
	const lines, width = 60_000, 50
	long, err := box.Background(t.Context(), "seq -f %049.0f 1 60000", sandbox.MaxLog(2<<20))
	noError(t, err)
	forgotten, err := box.Background(t.Context(), "echo forgotten")
	noError(t, err)
	for _, j := range []sandbox.Job{long, forgotten} {
		_, err := j.Wait(t.Context())
		noError(t, err)
	}
	check := func(j sandbox.Job) {
		t.Helper()
		data, next, err := j.Logs(t.Context(), 0)
		noError(t, err)
		if from := next - int64(len(data)); from != lines*width-2<<20 {
			t.Errorf("the log begins at %d", from)
		}
		data, next, err = j.Logs(t.Context(), lines*width-width)
		if want := "60000\n"; err != nil || next != lines*width ||
			!strings.HasSuffix(string(data), want) {
			t.Errorf("the log ends with %q at %d, %v", data, next, err)
		}
	}
	check(long)
	noError(t, forgotten.Forget())
	id := box.ContainerID()
	noError(t, box.Detach())
	box, err = Engine{}.Attach(t.Context(), id)
	noError(t, err)
	jobs := box.Jobs()
	if len(jobs) != 1 || jobs[0].ID() != long.ID() {
		t.Fatalf("the jobs are %v", jobs)
	}
	<-jobs[0].Done()
	check(jobs[0])
	noError(t, jobs[0].Forget())
}
