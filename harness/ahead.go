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

	setup *sharedSetup // what the samples of the task share; nil if each has its own

	made  chan struct{}   // closed when first or failure is set, or if no box is made ahead
	first sandbox.Sandbox // nil once box has returned it
	// snapshot is what the first box is made of; "" means the task's image.
	snapshot string
	// failure is the error of making the first box; nil once box has returned it.
	failure error

	reference *reference // nil until it is needed; what Check.Like compares with
	// referenceSeconds is the time that it took this sample to make the reference.
	referenceSeconds float64
}

// prepare begins to make the first box of a sample, and returns at once.
func (r *runner) prepare(ctx context.Context, task Task, sample int) *aheadTask {
	a := &aheadTask{task: task, sample: sample, made: make(chan struct{}),
		setup: r.setups[task.ID], dir: filepath.FromSlash(sampleID{task.ID, sample}.dir())}
	if a.err = os.MkdirAll(filepath.Join(r.cfg.Dir, a.dir), dirMode); a.err == nil {
		a.log, a.err = createLog(filepath.Join(r.cfg.Dir, a.dir, "log.txt"))
	}
	if a.err == nil {
		a.egress, a.err = newEgressLog(&task, filepath.Join(r.cfg.Dir, a.dir), a.log)
	}
	var ahead bool
	a.snapshot, ahead = a.setup.ahead()
	go func() {
		defer close(a.made)
		if a.err == nil && ahead {
			a.first, a.failure = r.newBox(ctx, a, a.snapshot)
		}
	}()
	return a
}

// box returns the first box at its first call. Later calls make another, of the snapshot if one is
// named. from is the snapshot that the box is made of.
func (a *aheadTask) box(ctx context.Context, r *runner, snapshot string) (box sandbox.Sandbox,
	from string, err error) {
	<-a.made
	if snapshot != "" && a.snapshot == "" && a.first != nil { // another sample was faster
		a.closeFirst()
	}
	if a.first == nil && a.failure == nil {
		box, err = r.newBox(ctx, a, snapshot)
		return box, snapshot, err
	}
	box, err = a.first, a.failure
	a.first, a.failure = nil, nil
	return box, a.snapshot, err
}

func (a *aheadTask) closeFirst() {
	if err := a.first.Close(); err != nil {
		fmt.Fprintf(a.log, "--- close the box: %v\n", err)
	}
	a.first = nil
}

// close closes the log, and the first box if box was never called.
func (a *aheadTask) close() error {
	<-a.made
	if a.err != nil {
		return a.err
	}
	if a.first != nil {
		a.closeFirst()
	}
	if err := a.setup.sampleEnded(); err != nil {
		fmt.Fprintf(a.log, "--- remove the snapshot of the setup: %v\n", err)
	}
	return errors.Join(a.egress.Close(), a.log.Close())
}
