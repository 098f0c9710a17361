package harness

import "context"

// A capacity bounds the tasks that run at once: their number, and the sum of their limits. One
// goroutine calls acquire. Any goroutine may call release.
type capacity struct {
	tasks    int
	memory   int64
	cpus     float64
	bound    struct{ memory, cpus bool }
	released chan Limits
}

func newCapacity(tasks int, memory int64, cpus float64) *capacity {
	r := &capacity{tasks: tasks, memory: memory, cpus: cpus, released: make(chan Limits, tasks)}
	r.bound.memory, r.bound.cpus = memory > 0, cpus > 0
	return r
}

// acquire waits until a task of these limits fits. It returns false if ctx ends first. A small task
// does not overtake a large one, which might otherwise wait for ever.
func (r *capacity) acquire(ctx context.Context, l Limits) bool {
	for ctx.Err() == nil {
		// Sums of fractions of processors are not exact.
		if r.tasks > 0 && (!r.bound.memory || l.Memory <= r.memory) &&
			(!r.bound.cpus || l.CPUs <= r.cpus+1e-9) {
			r.tasks--
			r.memory -= l.Memory
			r.cpus -= l.CPUs
			return true
		}
		select {
		case <-ctx.Done():
		case given := <-r.released:
			r.tasks++
			r.memory += given.Memory
			r.cpus += given.CPUs
		}
	}
	return false
}

// release returns what acquire has taken for a task of these limits.
func (r *capacity) release(l Limits) { r.released <- l }
