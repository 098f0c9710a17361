package kube

import "sync"

// Orphans are pods of this process's that it could not remove, or does not know to be there: the
// API server was away. Their labels say that they are this process's, which goes on, so Reap would
// leave them alone; it looks here too.
type orphans struct {
	mu  sync.Mutex
	box map[string]bool // by Pod.Box
}

// allOrphans is global because a box's Cluster is gone with the box.
var allOrphans = orphans{box: map[string]bool{}}

func (o *orphans) add(box string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box[box] = true
}

func (o *orphans) remove(box string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.box, box)
}

func (o *orphans) has(box string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box[box]
}
