package recording

import "time"

// SetPatience sets how long the recordings' writers may keep others waiting.
func (b *Box) SetPatience(d time.Duration) {
	r := b.recorder
	for _, c := range append([]*cast{r.all}, r.casts...) {
		if c != nil {
			c.mu.Lock()
			c.limit = d
			c.mu.Unlock()
		}
	}
}
