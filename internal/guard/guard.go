// Package guard calls a caller's functions in goroutines of this module. There a panic would end
// the process, because no caller can recover it.
package guard

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// A PanicError is the error of a call whose caller's function panicked.
type PanicError struct {
	What  string // the function, as in "Options.Progress"
	Value any    // what it panicked with
	Where string // the function and the line that panicked; empty if unknown
	Stack []byte // as debug.Stack gives it
}

func (e *PanicError) Error() string {
	text := fmt.Sprintf("%s panicked: %v", e.What, e.Value)
	if e.Where != "" {
		text += " (in " + e.Where + ")"
	}
	return text
}

// Unwrap returns Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Call calls f, which is a caller's function or calls one, and returns its error. If f panics, the
// error is a *PanicError, in which what names the function. If f calls runtime.Goexit, Call does
// not return.
func Call(what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{What: what, Value: v, Where: panicked(), Stack: debug.Stack()}
		}
	}()
	return f()
}

// Go calls f as Call does, in a goroutine of its own. The channel gets the error. If f calls
// runtime.Goexit, as testing.T's FailNow does, the error says so.
func Go(what string, f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() {
		err := fmt.Errorf("%s has ended its goroutine", what)
		defer func() { ended <- err }()
		err = Call(what, f)
	}()
	return ended
}

// panicked returns the function and the line that panicked. Only a deferred function may call it,
// while the stack still has the panic.
func panicked() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var inPanic bool
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			inPanic = true
		case inPanic && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf("%s, %s:%d", frame.Function, frame.File, frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// Writer returns a writer that writes to a caller's writer w. If w panics, the error of the Write
// is a *PanicError. If w is nil, Writer returns nil.
func Writer(what string, w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return &writer{what, w}
}

type writer struct {
	what string
	w    io.Writer
}

func (g *writer) Write(p []byte) (n int, err error) {
	err = Call(g.what, func() error {
		n, err = g.w.Write(p)
		return err
	})
	return n, err
}

// Reader returns a reader that reads from a caller's reader r. If r panics, the error of the Read
// is a *PanicError. If r is nil, Reader returns nil.
func Reader(what string, r io.Reader) io.Reader {
	if r == nil {
		return nil
	}
	return &reader{what, r}
}

type reader struct {
	what string
	r    io.Reader
}

func (g *reader) Read(p []byte) (n int, err error) {
	err = Call(g.what, func() error {
		n, err = g.r.Read(p)
		return err
	})
	return n, err
}
