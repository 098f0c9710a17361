package harness

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"

	"github.com/sandshell/sandshell/internal/printable"
)

// The bounds of numbers, so that a line of results.jsonl stays short.
const (
	numbersMax = 16
	nameMax    = 64 // bytes
)

// A numbers holds at most numbersMax finite numbers by name. It may be used concurrently.
type numbers struct {
	mu     sync.Mutex
	values map[string]float64
}

// set sets a number.
func (n *numbers) set(name string, value float64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.setLocked(name, value)
}

// add adds to a number, which is 0 at first.
func (n *numbers) add(name string, value float64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.setLocked(name, n.values[name]+value)
}

func (n *numbers) setLocked(name string, value float64) error {
	_, known := n.values[name]
	switch {
	case name == "" || len(name) > nameMax || printable.Line(name) != name:
		return fmt.Errorf("write a name of 1 to %d bytes without control characters", nameMax)
	case math.IsNaN(value) || math.IsInf(value, 0):
		return errors.New("it is not finite")
	case !known && len(n.values) == numbersMax:
		return fmt.Errorf("there are %d others already", numbersMax)
	}
	if n.values == nil {
		n.values = map[string]float64{}
	}
	n.values[name] = value
	return nil
}

// all returns a copy of the numbers. It is nil if there are none.
func (n *numbers) all() map[string]float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.values)
}
