package harness

import "context"

// A room bounds what tasks take that run at once. One goroutine takes, any give back.
type room struct {
	tasks  int
	memory int64
	cpus   float64
	bound  struct{ memory, cpus bool }
	back   chan Limits
}

func newRoom(tasks int, memory int64, cpus float64) *room {
	r := &room{tasks: tasks, memory: memory, cpus: cpus, back: make(chan Limits, tasks)}
	r.bound.memory, r.bound.cpus = memory > 0, cpus > 0
	return r
}

// take waits until a task of these limits fits. It is false when ctx ends first. Tasks are not
// overtaken by smaller ones behind them, which could keep a large one waiting for ever.
func (r *room) take(ctx context.Context, l Limits) bool {
	for ctx.Err() == nil {
		// sums of fractions are not exact
		if r.tasks > 0 && (!r.bound.memory || l.Memory <= r.memory) &&
			(!r.bound.cpus || l.CPUs <= r.cpus+1e-9) {
			r.tasks--
			r.memory -= l.Memory
			r.cpus -= l.CPUs
			return true
		}
		select {
		case <-ctx.Done():
		case given := <-r.back:
			r.tasks++
			r.memory += given.Memory
			r.cpus += given.CPUs
		}
	}
	return false
}

// give gives back what a task took.
func (r *room) give(l Limits) { r.back <- l }
