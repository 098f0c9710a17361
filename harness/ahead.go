package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandshell/sandshell/sandbox"
)

// A start is a task on its way: its image is built and its first box made, perhaps while tasks
// before it run.
type start struct {
	task Task
	dir  string // the task's, in Config.Dir
	log  *taskLog
	err  error // there is no log

	made  chan struct{}   // closed when there is a box, or failure says why not
	first sandbox.Sandbox // until it is taken
	// failure is what the engine said in place of a first box, until that is taken.
	failure error

	// want is what Check.Like compares with, under a key, once the reference solution is done.
	want        map[string]string
	key         []byte
	wantSeconds float64
}

// start begins to make what a task needs.
func (r *runner) start(ctx context.Context, task Task) *start {
	s := &start{task: task, dir: filepath.Join("tasks", filepath.FromSlash(task.ID)),
		made: make(chan struct{})}
	if s.err = os.MkdirAll(filepath.Join(r.Dir, s.dir), dirMode); s.err == nil {
		s.log, s.err = createLog(filepath.Join(r.Dir, s.dir, "log.txt"))
	}
	go func() {
		defer close(s.made)
		if s.err == nil {
			s.first, s.failure = r.newBox(ctx, &s.task, s.log)
		}
	}()
	return s
}

// box returns the box that was made ahead, once; then it makes one.
func (s *start) box(ctx context.Context, r *runner) (sandbox.Sandbox, error) {
	<-s.made
	if s.first == nil && s.failure == nil {
		return r.newBox(ctx, &s.task, s.log)
	}
	box, err := s.first, s.failure
	s.first, s.failure = nil, nil
	return box, err
}

// close ends the log, and a box that nobody has taken.
func (s *start) close() error {
	<-s.made
	if s.err != nil {
		return s.err
	}
	if s.first != nil {
		if err := s.first.Close(); err != nil {
			fmt.Fprintf(s.log, "--- close the box: %v\n", err)
		}
	}
	return s.log.Close()
}
