package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandshell/sandshell/sandbox"
)

// An aheadTask is a task whose image is built and whose first box is made, possibly while earlier
// tasks run.
type aheadTask struct {
	task   Task
	sample int
	dir    string // the sample's, below Config.Dir
	log    *taskLog
	egress *egressLog
	err    error // of creating dir, log or egress

	made  chan struct{}   // closed when first or failure is set
	first sandbox.Sandbox // nil once box has returned it
	// failure is the error of making the first box; nil once box has returned it.
	failure error

	reference *reference // nil until it is needed; what Check.Like compares with
	// referenceSeconds is the time that it took this sample to make the reference.
	referenceSeconds float64
}

// prepare begins to make the first box of a sample, and returns at once.
func (r *runner) prepare(ctx context.Context, task Task, sample int) *aheadTask {
	a := &aheadTask{task: task, sample: sample, made: make(chan struct{}),
		dir: filepath.FromSlash(sampleID{task.ID, sample}.dir())}
	if a.err = os.MkdirAll(filepath.Join(r.cfg.Dir, a.dir), dirMode); a.err == nil {
		a.log, a.err = createLog(filepath.Join(r.cfg.Dir, a.dir, "log.txt"))
	}
	if a.err == nil {
		a.egress, a.err = newEgressLog(&task, filepath.Join(r.cfg.Dir, a.dir), a.log)
	}
	go func() {
		defer close(a.made)
		if a.err == nil {
			a.first, a.failure = r.newBox(ctx, a)
		}
	}()
	return a
}

// box returns the first box at its first call. Later calls make another.
func (a *aheadTask) box(ctx context.Context, r *runner) (sandbox.Sandbox, error) {
	<-a.made
	if a.first == nil && a.failure == nil {
		return r.newBox(ctx, a)
	}
	box, err := a.first, a.failure
	a.first, a.failure = nil, nil
	return box, err
}

// close closes the log, and the first box if box was never called.
func (a *aheadTask) close() error {
	<-a.made
	if a.err != nil {
		return a.err
	}
	if a.first != nil {
		if err := a.first.Close(); err != nil {
			fmt.Fprintf(a.log, "--- close the box: %v\n", err)
		}
	}
	return errors.Join(a.egress.Close(), a.log.Close())
}
