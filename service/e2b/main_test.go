package e2b_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestMain checks that the tests leave no goroutine and no container behind.
func TestMain(m *testing.M) { dockertest.Main(m) }

// within returns a context that ends a call which hangs.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	t.Cleanup(cancel)
	return ctx
}

// shell returns a request to start a command in a shell.
func shell(command string) *e2b.StartRequest {
	no := false
	return &e2b.StartRequest{Process: &e2b.ProcessConfig{Cmd: "/bin/sh",
		Args: []string{"-c", command}}, Stdin: &no}
}

// A run is what came of a process.
type run struct {
	pid                 uint32
	stdout, stderr, pty bytes.Buffer
	end                 *e2b.EndEvent
	err                 error
}

// read reads a stream of a process. It stops when until returns true, and at the end.
func (r *run) read(t testing.TB, s *e2b.Stream, until func() bool) {
	t.Helper()
	for until == nil || !until() {
		var m e2b.ProcessResponse
		if err := s.Next(&m); err != nil {
			if !errors.Is(err, io.EOF) {
				r.err = err
			}
			return
		}
		require.NotNil(t, m.Event)
		switch e := m.Event; {
		case e.Start != nil:
			r.pid = e.Start.PID
		case e.Data != nil:
			r.stdout.Write(e.Data.Stdout)
			r.stderr.Write(e.Data.Stderr)
			r.pty.Write(e.Data.PTY)
		case e.End != nil:
			r.end = e.End
		}
	}
}

// start starts a process, and reads until it has the process id.
func start(t testing.TB, c *e2b.Client, req *e2b.StartRequest) (*e2b.Stream, *run) {
	t.Helper()
	s, err := c.Stream(within(t), e2b.ProcessService+"Start", req)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	r := &run{}
	r.read(t, s, func() bool { return r.pid != 0 })
	require.NoError(t, r.err)
	return s, r
}

// does runs a command to its end.
func does(t testing.TB, c *e2b.Client, command string) *run {
	t.Helper()
	s, r := start(t, c, shell(command))
	r.read(t, s, nil)
	require.NoError(t, r.err)
	require.NotNil(t, r.end)
	return r
}

// of returns a request that names a process.
func of(pid uint32) *e2b.ProcessRequest {
	return &e2b.ProcessRequest{Process: &e2b.Selector{PID: pid}}
}
