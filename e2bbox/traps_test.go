package e2bbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/sandbox"
)

// TestNoDeadlineSent checks that no deadline of a context is sent: E2B kills a process at it.
func TestNoDeadlineSent(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	f := startFront(t, g)
	b := newBox(t, through(t, g, f)) // its context has a deadline
	f.cut()                          // and so has the one with which it connects again
	does(t, b, "echo x", "x\n")
	require.Greater(t, f.count(func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/Start")
	}), 2)
	require.Zero(t, f.count(func(r *http.Request) bool {
		return r.Header.Get("Connect-Timeout-Ms") != ""
	}))
}

// TestCuts closes all connections again and again while a command prints: E2B drops what a process
// prints while nobody is connected.
func TestCuts(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	f := startFront(t, g)
	b := newBox(t, through(t, g, f))
	const wanted = 5
	var out bytes.Buffer
	cuts, seen := 0, 0
	enough := make(chan struct{})
	stopped := make(chan error, 1)
	go func() {
		<-enough
		_, err := b.Run(within(t), &sandbox.Cmd{Args: []string{"touch", "/tmp/stop"}})
		stopped <- err
	}()
	r, err := b.Execute(t.Context(), `i=0; until [ -e /tmp/stop ]; do i=$((i+1)); echo line $i
		[ $((i%10)) != 0 ] || sleep 0.01; done`,
		sandbox.Timeout(3*time.Minute), sandbox.Tee(writerFunc(func(p []byte) {
			out.Write(p)
			if cuts == wanted || out.Len()-seen < 1<<10 {
				return
			}
			seen = out.Len()
			f.cut()
			if cuts++; cuts == wanted {
				close(enough)
			}
		})))
	require.NoError(t, err)
	require.Zero(t, r.ExitCode)
	require.Equal(t, wanted, cuts)
	require.NoError(t, <-stopped)
	got := strings.ReplaceAll(out.String(), "\r", "")
	var want strings.Builder
	for i := range strings.Count(got, "\n") {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	require.True(t, want.String() == got)
}

// TestPaused checks that a command goes on after a pause, and that nothing asks the data plane of a
// paused sandbox: E2B may resume the sandbox because of it, which costs money.
func TestPaused(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	f := startFront(t, g)
	b := newBox(t, through(t, g, f))
	type result struct {
		r   *sandbox.Result
		err error
	}
	done := make(chan result, 1)
	started := make(chan struct{})
	go func() {
		var once bool
		r, err := b.Execute(context.Background(), `echo up; until [ -e /tmp/go ]; do sleep 0.05
			done; echo done`, sandbox.Tee(writerFunc(func([]byte) {
			if !once {
				once = true
				close(started)
			}
		})))
		done <- result{r, err}
	}()
	<-started
	require.NoError(t, b.Pause(within(t)))
	require.NoError(t, b.Pause(within(t)))
	asked := func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/sandboxes/")
	}
	before := f.count(asked)
	eventually(t, "the box asks what has become of the sandbox", func() bool {
		return f.count(asked) > before
	})
	data, looks := f.count(ofData), f.count(asked)
	eventually(t, "it asks again", func() bool { return f.count(asked) > looks+1 })
	require.Equal(t, data, f.count(ofData), "requests of the data plane while it was paused")
	require.NoError(t, b.Resume(within(t)))
	r, err := b.Run(within(t), &sandbox.Cmd{Args: []string{"touch", "/tmp/go"}})
	require.NoError(t, err)
	require.Zero(t, r)
	got := <-done
	require.NoError(t, got.err)
	require.Equal(t, "up\ndone\n", got.r.Output)
}

// A writerFunc is called at each Write.
type writerFunc func(p []byte)

func (w writerFunc) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// TestHeldRequests goes through a proxy that passes a request on when it has all of it.
func TestHeldRequests(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	f := startFront(t, g)
	f.set(func(f *front) { f.holdRequests = true })
	b := newBox(t, through(t, g, f))
	does(t, b, "echo x", "x\n")
	require.Equal(t, 1, f.count(isStreamInput)) // the one that was tried
	data := bytes.Repeat([]byte("0123456789"), 300_000)
	var out bytes.Buffer
	code, err := b.Run(within(t), &sandbox.Cmd{Args: []string{"cat"}, Stdin: bytes.NewReader(data),
		Stdout: &out})
	require.NoError(t, err)
	require.Zero(t, code)
	require.True(t, bytes.Equal(data, out.Bytes()))
}

// TestHeldAnswers goes through a proxy that passes an answer on when it has all of it: nothing
// works, and the error says what to do. The sandbox is removed.
func TestHeldAnswers(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	f := startFront(t, g)
	f.set(func(f *front) { f.holdAnswers = true })
	_, err := New(within(t), through(t, g, f))
	require.ErrorContains(t, err, "proxy_buffering off")
	list, err := g.Control.List(within(t), nil)
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestForeignAnswer checks the error about an answer that is not of E2B's API.
func TestForeignAnswer(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	f := startFront(t, g)
	f.set(func(f *front) {
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if ofData(r) {
				fmt.Fprint(w, "<html>sign in to the network\x1b[31m</html>")
			}
			return ofData(r)
		}
	})
	_, err := New(within(t), through(t, g, f))
	require.ErrorContains(t, err, "a proxy may have answered")
	f.set(func(f *front) {
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if ofData(r) {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, "<html>sign in\x1b[31m</html>")
			}
			return ofData(r)
		}
	})
	_, err = New(within(t), through(t, g, f))
	require.True(t, e2b.HasStatus(err, http.StatusForbidden), "%v", err)
	require.NotContains(t, err.Error(), "\x1b")
}

// lost waits until the box says why it is lost.
func lost(t testing.TB, b *E2BBox) *sandbox.LostError {
	t.Helper()
	_, err := b.Execute(within(t), "sleep 60")
	var e *sandbox.LostError
	require.True(t, errors.As(err, &e), "%v", err)
	return e
}

// TestKilled checks what is said of a sandbox that somebody has removed, and of one whose time has
// ended.
func TestKilled(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	b := newBox(t, configOf(t, g))
	require.NoError(t, g.Control.Kill(within(t), b.SandboxID()))
	e := lost(t, b)
	require.Equal(t, sandbox.LostRemoved, e.Cause)
	require.Equal(t, "the sandbox was removed", e.Reason)

	b = newBox(t, configOf(t, g))
	require.NoError(t, g.Control.SetTimeout(within(t), b.SandboxID(), 1))
	b.place.mu.Lock()
	b.place.ends = time.Now().Add(time.Second) // as the next look of the lease would find
	b.place.mu.Unlock()
	eventually(t, "the sandbox is gone", func() bool {
		_, err := g.Control.Get(within(t), b.SandboxID())
		return e2b.HasStatus(err, http.StatusNotFound)
	})
	e = lost(t, b)
	require.Contains(t, e.Reason, "its time ended at")
	require.Contains(t, e.Reason, "Config.Timeout")
}

// TestBoxdGone kills boxd in the sandbox. E2B has no error for a program that does not exist, but
// the exit status 127.
func TestBoxdGone(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	b := newBox(t, configOf(t, g))
	s, err := g.Control.Connect(within(t), b.SandboxID(), 60)
	require.NoError(t, err)
	stream, err := g.Client(s).Stream(within(t), e2b.ProcessService+"Start", &e2b.StartRequest{
		Process: &e2b.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c",
			"pkill -9 -f 'boxd serve.*/box-'; rm -rf " + b.place.boxd.Dir}}})
	require.NoError(t, err)
	defer stream.Close()
	e := lost(t, b)
	require.Equal(t, sandbox.LostRemoved, e.Cause)
	require.Contains(t, e.Reason, "boxd")
}

// TestLease checks that the end of a sandbox is moved while its program has it, never to earlier,
// and not while it is paused.
func TestLease(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	f := startFront(t, g)
	c := through(t, g, f)
	c.Timeout = minTimeout
	b := newBox(t, c)
	ends := func() time.Time {
		d, err := g.Control.Get(within(t), b.SandboxID())
		require.NoError(t, err)
		return d.EndAt
	}
	first := ends()
	eventually(t, "the end is moved", func() bool { return ends().After(first.Add(time.Second)) })
	moved := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/timeout") }
	require.NoError(t, b.Extend(within(t), time.Hour))
	require.Greater(t, time.Until(ends()), 50*time.Minute)
	n := f.count(moved)
	b.place.extend(within(t)) // as the lease does
	require.Equal(t, n, f.count(moved))
	require.NoError(t, b.Extend(within(t), time.Minute))
	require.Greater(t, time.Until(ends()), 50*time.Minute)

	require.NoError(t, b.Pause(within(t)))
	b.place.extend(within(t))
	require.Equal(t, n, f.count(moved))
	require.NoError(t, b.Resume(within(t)))
	does(t, b, "echo x", "x\n")
}

// TestLeaseRefused checks that a box works on when its end cannot be moved, and what is said then.
func TestLeaseRefused(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	f := startFront(t, g)
	f.set(func(f *front) {
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			refuse := strings.HasSuffix(r.URL.Path, "/timeout")
			if refuse {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"code":400,"message":"Timeout cannot be greater than 1 hours"}`)
			}
			return refuse
		}
	})
	c := through(t, g, f)
	c.Logger = nil
	b := newBox(t, c)
	b.place.mu.Lock()
	b.place.ends = time.Now()
	b.place.mu.Unlock()
	require.NoError(t, g.Control.SetTimeout(within(t), b.SandboxID(), 3))
	b.place.extend(within(t))
	does(t, b, "echo x", "x\n")
	eventually(t, "the sandbox is gone", func() bool {
		_, err := g.Control.Get(within(t), b.SandboxID())
		return e2b.HasStatus(err, http.StatusNotFound)
	})
	e := lost(t, b)
	require.Contains(t, e.Reason, "its time ended at")
	require.ErrorContains(t, e, "Timeout cannot be greater than 1 hours")
}
