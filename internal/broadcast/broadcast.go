// Package broadcast wakes all goroutines that wait for a change.
package broadcast

// A Signal wakes all goroutines that wait for a change of data. The mutex that guards the data also
// guards the Signal. The zero Signal is ready for use.
type Signal struct{ changed chan struct{} }

// Wait returns a channel that the next Send closes.
func (s *Signal) Wait() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// Send closes the channel that Wait has returned. Later calls of Wait return another one.
func (s *Signal) Send() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
