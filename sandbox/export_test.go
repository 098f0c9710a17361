package sandbox

import "time"

// SetPatience sets how long the recording's writer may keep others waiting.
func (r *Recording) SetPatience(d time.Duration) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.all.limit = d
}
