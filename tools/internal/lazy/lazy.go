// Package lazy opens a value when it is first needed.
package lazy

import (
	"context"
	"errors"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A Value is a value that the first Get opens. It is for a kernel or a browser, which takes a
// second and some megabytes, and may never be used. The methods may be called concurrently.
type Value[T interface{ Close() error }] struct {
	open func(ctx context.Context) (T, error)

	opening chan struct{} // holds a token while a Get may open the value
	mu      sync.Mutex
	isOpen  bool
	closed  bool
	value   T
}

// New returns a Value that open opens.
func New[T interface{ Close() error }](open func(ctx context.Context) (T, error)) *Value[T] {
	return &Value[T]{open: open, opening: make(chan struct{}, 1)}
}

// Get returns the value, and opens it first if it is not open. After Close the error is
// sandbox.ErrClosed.
func (l *Value[T]) Get(ctx context.Context) (T, error) {
	var none T
	select {
	case l.opening <- struct{}{}:
		defer func() { <-l.opening }()
	case <-ctx.Done():
		return none, ctxerr.Of(ctx)
	}
	l.mu.Lock()
	isOpen, closed, value := l.isOpen, l.closed, l.value
	l.mu.Unlock()
	switch {
	case closed:
		return none, sandbox.ErrClosed
	case isOpen:
		return value, nil
	}
	value, err := l.open(ctx)
	if err != nil {
		return none, err
	}
	l.mu.Lock()
	if !l.closed {
		l.isOpen, l.value = true, value
		l.mu.Unlock()
		return value, nil
	}
	l.mu.Unlock()
	return none, errors.Join(sandbox.ErrClosed, value.Close())
}

// Drop closes the value if it is open. The next Get opens another.
func (l *Value[T]) Drop() error {
	l.mu.Lock()
	isOpen, value := l.isOpen, l.value
	l.isOpen = false
	l.mu.Unlock()
	if !isOpen {
		return nil
	}
	return value.Close()
}

// Close closes the value if it is open. Further calls do nothing and return nil.
func (l *Value[T]) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Drop()
}
