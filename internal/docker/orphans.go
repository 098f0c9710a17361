package docker

import (
	"sync"
	"time"
)

// Orphans are containers of this process's that it could not remove, or does not know to be there:
// the engine was away. Their labels say that they are this process's, which goes on, so Reap would
// leave them alone; it looks here too.
type orphans struct {
	mu  sync.Mutex
	box map[string]time.Time // by Container.Box: since when
}

// allOrphans is global because a box's engine is closed with the box.
var allOrphans = orphans{box: map[string]time.Time{}}

// add notes a container.
func (o *orphans) add(box string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box[box] = time.Now()
}

// remove forgets one, which is certainly gone.
func (o *orphans) remove(box string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.box, box)
}

func (o *orphans) has(box string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.box[box]
	return ok
}

// forget drops those that an engine has been seen without, so long after they were to be made that
// none will be.
func (o *orphans) forget(seen map[string]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for box, since := range o.box {
		if !seen[box] && time.Since(since) > orphanAge {
			delete(o.box, box)
		}
	}
}

// orphanAge is for programs that use several engines: one that is not on this engine may be on
// another, which is asked less often.
const orphanAge = 24 * time.Hour
