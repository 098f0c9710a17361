package remotebox

import (
	"maps"
	"sync"
	"time"
)

// Orphans are containers or pods that this process could not remove, or of which it does not know
// whether they were made, because the engine or the cluster did not answer. Their labels name this
// process as their owner. While it runs, only the process itself knows that it does not want them,
// so Reap asks Has. The zero value is ready for use. Its methods may be called from several
// goroutines.
type Orphans struct {
	mu    sync.Mutex
	since map[string]time.Time // by the label that tells the box from any other
}

const (
	// orphanAge is how long an orphan is remembered after an engine was seen without it. The
	// program may use several engines, and the orphan may be on one that is asked less often.
	orphanAge = 24 * time.Hour
	// orphanLimit is how long an orphan is remembered in any case: its engine may never come back.
	orphanLimit = 7 * orphanAge
)

// Add notes an orphan.
func (o *Orphans) Add(box string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since == nil {
		o.since = map[string]time.Time{}
	}
	maps.DeleteFunc(o.since, func(_ string, since time.Time) bool {
		return time.Since(since) > orphanLimit
	})
	o.since[box] = time.Now()
}

// Remove forgets one that is certainly gone.
func (o *Orphans) Remove(box string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, box)
}

// Has reports whether a box is an orphan.
func (o *Orphans) Has(box string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.since[box]
	return ok
}

// Forget forgets the orphans older than a day that are not among the boxes seen on an engine.
func (o *Orphans) Forget(seen map[string]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.since, func(box string, since time.Time) bool {
		return !seen[box] && time.Since(since) > orphanAge
	})
}
