// Package lazy opens things when they are first needed.
package lazy

import (
	"context"
	"errors"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A Value is opened when it is first needed: a kernel or a browser takes a second and some
// megabytes, which nobody may ever use. Its methods may be called from several goroutines.
type Value[T interface{ Close() error }] struct {
	open func(ctx context.Context) (T, error)

	turn   chan struct{} // full while it is opened
	mu     sync.Mutex
	there  bool
	closed bool
	value  T
}

// New returns a Value that open opens.
func New[T interface{ Close() error }](open func(ctx context.Context) (T, error)) *Value[T] {
	return &Value[T]{open: open, turn: make(chan struct{}, 1)}
}

// Get returns what is open, or opens it. After Close the error is sandbox.ErrClosed.
func (l *Value[T]) Get(ctx context.Context) (T, error) {
	var none T
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return none, ctxerr.Of(ctx)
	}
	l.mu.Lock()
	there, closed, value := l.there, l.closed, l.value
	l.mu.Unlock()
	switch {
	case closed:
		return none, sandbox.ErrClosed
	case there:
		return value, nil
	}
	value, err := l.open(ctx)
	if err != nil {
		return none, err
	}
	l.mu.Lock()
	if !l.closed {
		l.there, l.value = true, value
		l.mu.Unlock()
		return value, nil
	}
	l.mu.Unlock()
	return none, errors.Join(sandbox.ErrClosed, value.Close())
}

// Drop closes what is open, for the next Get to open another.
func (l *Value[T]) Drop() error {
	l.mu.Lock()
	there, value := l.there, l.value
	l.there = false
	l.mu.Unlock()
	if !there {
		return nil
	}
	return value.Close()
}

// Close closes what is open, for good. Closing again does nothing.
func (l *Value[T]) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Drop()
}
