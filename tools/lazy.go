package tools

import (
	"context"
	"errors"
	"sync"

	"github.com/sandshell/sandshell/sandbox"
)

// A lazy is opened when it is first needed: a kernel or a browser takes a second and some megabytes, which a model may never use.
type lazy[T interface{ Close() error }] struct {
	open func(ctx context.Context) (T, error)

	turn   chan struct{} // full while it is opened
	mu     sync.Mutex
	there  bool
	closed bool
	value  T
}

func newLazy[T interface{ Close() error }](open func(ctx context.Context) (T, error)) *lazy[T] {
	return &lazy[T]{open: open, turn: make(chan struct{}, 1)}
}

// get returns what is open, or opens it.
func (l *lazy[T]) get(ctx context.Context) (T, error) {
	var none T
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return none, ctx.Err()
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

// drop closes what is open, for the next get to open another.
func (l *lazy[T]) drop() error {
	l.mu.Lock()
	there, value := l.there, l.value
	l.there = false
	l.mu.Unlock()
	if !there {
		return nil
	}
	return value.Close()
}

func (l *lazy[T]) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.drop()
}
