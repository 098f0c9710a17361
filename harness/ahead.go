package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandshell/sandshell/sandbox"
)

// An aheadTask is a task whose image is built and whose first box is made, perhaps while earlier
// tasks run.
type aheadTask struct {
	task Task
	dir  string // the task's, below Config.Dir
	log  *taskLog
	err  error // why there is no log

	made  chan struct{}   // closed when first or failure is set
	first sandbox.Sandbox // nil once box has returned it
	// failure is why there is no first box; nil once box has returned it.
	failure error

	// want is what Check.Like compares with: the listing of what the reference solution leaves,
	// under a key. It is nil until the reference solution has run.
	want        map[string]string
	key         []byte
	wantSeconds float64
}

// prepare begins to make the first box of a task, and returns at once.
func (r *runner) prepare(ctx context.Context, task Task) *aheadTask {
	a := &aheadTask{task: task, dir: filepath.Join("tasks", filepath.FromSlash(task.ID)),
		made: make(chan struct{})}
	if a.err = os.MkdirAll(filepath.Join(r.cfg.Dir, a.dir), dirMode); a.err == nil {
		a.log, a.err = createLog(filepath.Join(r.cfg.Dir, a.dir, "log.txt"))
	}
	go func() {
		defer close(a.made)
		if a.err == nil {
			a.first, a.failure = r.newBox(ctx, &a.task, a.log)
		}
	}()
	return a
}

// box returns the box that was made ahead, at its first call. Later calls make one.
func (a *aheadTask) box(ctx context.Context, r *runner) (sandbox.Sandbox, error) {
	<-a.made
	if a.first == nil && a.failure == nil {
		return r.newBox(ctx, &a.task, a.log)
	}
	box, err := a.first, a.failure
	a.first, a.failure = nil, nil
	return box, err
}

// close closes the log, and the first box if it was never used.
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
	return a.log.Close()
}
