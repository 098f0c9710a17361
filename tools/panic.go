package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"sync"

	"github.com/sandshell/sandshell/internal/guard"
)

// A PanicError is the error of a call whose tool has panicked, or of a Close whose function has
// panicked. [Set.Do], [Set.Call] and [Set.Close] return a *PanicError, perhaps wrapped. It has
// these fields and methods:
//
//	What  string // the function, such as "the tool run"
//	Value any    // what it panicked with
//	Where string // the function and the line that panicked; "" if unknown
//	Stack []byte // the whole stack, as debug.Stack returns it
//
//	Error() string // What, Value and Where in one text
//	Unwrap() error // Value if it is an error, else nil
type PanicError = guard.PanicError

// do calls the tool. If the tool or the writer of WithOutput panics, the error is a *PanicError.
func (t *Tool) do(ctx context.Context, args json.RawMessage) (r *Reply, err error) {
	ctx = context.WithValue(ctx, prefixKey{}, t.prefix)
	var output *outputGuard
	if w := outputOf(ctx); w != nil {
		output = &outputGuard{w: guard.Writer("the writer of WithOutput", w)}
		ctx = WithOutput(ctx, output)
	}
	err = guard.Call("the tool "+t.Name, func() (err error) {
		r, err = t.call(ctx, args)
		return err
	})
	if output != nil {
		if panicked := output.panicked(); panicked != nil {
			return nil, panicked
		}
	}
	return r, err
}

// An outputGuard wraps the writer of WithOutput during a call. The box calls it from its own
// goroutines. If the writer panics, that is the error of this Write and of all further ones, which
// do not call the writer.
type outputGuard struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (g *outputGuard) Write(p []byte) (n int, err error) {
	if err := g.panicked(); err != nil {
		return 0, err
	}
	n, err = g.w.Write(p)
	var panicked *PanicError
	if errors.As(err, &panicked) {
		g.mu.Lock()
		g.err = err
		g.mu.Unlock()
	}
	return n, err
}

func (g *outputGuard) panicked() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// once returns a function that calls f only the first time, and always returns the error of f. A
// panic of f is a *PanicError.
func once(what string, f func() error) func() error {
	return sync.OnceValue(func() error { return guard.Call(what, f) })
}

// broken returns a Set for which New returns err.
func broken(err error) *Set { return &Set{err: err} }

// isNil reports whether v is nil, or a nil pointer.
func isNil(v any) bool {
	p := reflect.ValueOf(v)
	return v == nil || p.Kind() == reflect.Pointer && p.IsNil()
}
