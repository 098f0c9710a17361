package guard_test

import (
	"errors"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/guard"
)

func TestCall(t *testing.T) {
	require.NoError(t, guard.Call("f", func() error { return nil }))
	require.Equal(t, io.EOF, guard.Call("f", func() error { return io.EOF }))

	err := guard.Call("Options.F", func() error { panic("oops") })
	require.Regexp(t, `^Options\.F panicked: oops \(in .*TestCall.*, .*guard_test\.go:\d+\)$`, err)
	var panicked *guard.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "oops", panicked.Value)
	require.Contains(t, string(panicked.Stack), "guard_test.go")

	require.ErrorIs(t, guard.Call("f", func() error { panic(fs.ErrClosed) }), fs.ErrClosed)

	var none *strings.Reader
	err = guard.Call("f", func() error { none.Len(); return nil })
	require.Regexp(t, `nil pointer dereference \(in strings\.\(\*Reader\)\.Len, `, err)
	err = guard.Call("f", func() error { panic(nil) })
	require.ErrorContains(t, err, "f panicked: panic called with nil")
}

func TestGo(t *testing.T) {
	require.NoError(t, <-guard.Go("f", func() error { return nil }))
	require.ErrorContains(t, <-guard.Go("f", func() error { panic("oops") }), "f panicked: oops")
	err := <-guard.Go("f", func() error { runtime.Goexit(); return nil })
	require.EqualError(t, err, "f has ended its goroutine")
}

// A faulty panics once if panics is set. Later calls write or read one byte and return an error.
type faulty struct{ panics bool }

func (f *faulty) Write([]byte) (int, error) { return f.one() }
func (f *faulty) Read([]byte) (int, error)  { return f.one() }

func (f *faulty) one() (int, error) {
	if f.panics {
		f.panics = false
		panic("oops")
	}
	return 1, errors.ErrUnsupported
}

func TestStreams(t *testing.T) {
	for what, call := range map[string]func(*faulty, []byte) (int, error){
		"Write": func(f *faulty, p []byte) (int, error) { return guard.Writer("it", f).Write(p) },
		"Read":  func(f *faulty, p []byte) (int, error) { return guard.Reader("it", f).Read(p) },
	} {
		f := &faulty{panics: true}
		n, err := call(f, make([]byte, 2))
		require.Zero(t, n, what)
		require.ErrorContains(t, err, "it panicked: oops")
		n, err = call(f, make([]byte, 2))
		require.Equal(t, 1, n, what)
		require.Equal(t, errors.ErrUnsupported, err, what)
	}
	require.Nil(t, guard.Writer("it", nil))
	require.Nil(t, guard.Reader("it", nil))
}
