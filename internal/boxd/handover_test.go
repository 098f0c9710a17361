//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// TestInputBeforeClose closes a channel, or gives the turn away, while boxd cannot pass on the
// input because the program does not read. Nothing of the input is lost.
func TestInputBeforeClose(t *testing.T) {
	b := startBox(t)
	before := b.steady()
	owner := b.owner()
	_, other := b.joinAs()
	for _, end := range []string{"close", "yield"} {
		fifo := filepath.Join(b.dir, "go-"+end)
		require.NoError(t, syscall.Mkfifo(fifo, 0o600))
		const size = 300_000 // more than a pipe and boxd's queue hold
		script := fmt.Sprintf("read -r go <%s; head -c %d | wc -c", fifo, size)
		p := b.openProgram(owner, &wire.Open{ID: end, Start: &wire.Start{
			Args: [][]byte{[]byte("sh"), []byte("-c"), []byte(script)}}})
		p.await(t, wire.StateRequest)
		require.NoError(t, wire.Send(p, wire.NoteRequest, []byte("a note")))
		_, err := p.Write(bytes.Repeat([]byte("x"), size))
		require.NoError(t, err)
		open, next := &wire.Open{ID: end, Stdout: 0}, owner
		if end == "yield" {
			_, err = p.SendRequest(wire.YieldRequest, false, ssh.Marshal(&wire.Yield{}))
			require.NoError(t, err)
			open, next = &wire.Open{ID: end, Stdout: -1, Take: true}, other
		} else {
			p.Close()
		}
		again := b.openProgram(next, open)
		again.await(t, wire.StateRequest)
		require.NoError(t, os.WriteFile(fifo, []byte("\n"), 0))
		line := make([]byte, len("300000\n"))
		_, err = io.ReadFull(again, line)
		require.NoError(t, err)
		require.Equal(t, "300000\n", string(line))
		again.SendRequest(wire.ReleaseRequest, false, nil)
	}
	owner.Close()
	other.Close()
	b.settled(before)
}

// A slowWay is a way on which what the client sends takes a while. If the client closes the
// connection, or it is cut, what is on its way is lost.
type slowWay struct {
	way
	mu sync.Mutex
	on *slow
}

const slowness = 20 * time.Millisecond

type slow struct {
	*joined
	sent chan []byte
	gone chan struct{}
	once sync.Once
}

func (w *slowWay) Join(context.Context) (client.Streams, error) {
	s := &slow{joined: w.b.dial(), sent: make(chan []byte, 1<<12), gone: make(chan struct{})}
	w.mu.Lock()
	w.on = s
	w.mu.Unlock()
	go func() {
		for {
			select {
			case p := <-s.sent:
				select {
				case <-time.After(slowness):
					s.joined.Write(p)
				case <-s.gone:
					return
				}
			case <-s.gone:
				return
			}
		}
	}()
	return s, nil
}

func (s *slow) Said() string { return "" }

func (s *slow) Write(p []byte) (int, error) {
	select {
	case s.sent <- bytes.Clone(p):
		return len(p), nil
	case <-s.gone:
		return 0, net.ErrClosed
	}
}

func (s *slow) Close() error {
	s.once.Do(func() { close(s.gone) })
	return s.joined.Close()
}

func (w *slowWay) cut() {
	w.mu.Lock()
	on := w.on
	w.mu.Unlock()
	on.Close()
}

// TestDetachHandsOver detaches as soon as calls have accepted what is to be done, while all of it
// is on its way to boxd. The next program finds that it was done.
func TestDetachHandsOver(t *testing.T) {
	ctx := t.Context()
	w := &slowWay{way: way{b: startBoxWith(t, []string{"-keep"}, nil)}}
	options := shellbox.Options{Dir: w.b.dir, Shell: []string{"bash"},
		Logger: slog.New(slog.DiscardHandler)}
	box, err := shellbox.New(ctx, connect(t, w, false), options)
	require.NoError(t, err)
	for _, end := range []string{"detach", "cut", "close"} {
		reads, err := box.Open(ctx)
		require.NoError(t, err)
		r, err := reads.Execute(ctx, "read -r line; echo $line; stty size")
		require.NoError(t, err)
		require.Equal(t, sandbox.Waiting, r.State)
		asks, err := box.Background(ctx, "read -r line; echo job $line")
		require.NoError(t, err)

		require.NoError(t, reads.Resize(ctx, 30, 100))
		require.NoError(t, reads.Type(ctx, "typed\n"))
		require.NoError(t, asks.Input(ctx, "input\n"))
		r, err = box.Execute(ctx, "echo executed; until rm go; do sleep 0.01; done 2>/dev/null",
			sandbox.Yield(time.Nanosecond))
		require.NoError(t, err)
		require.Equal(t, sandbox.Running, r.State)
		job, err := box.Background(ctx, "echo begun; exit 3")
		require.NoError(t, err)
		if end == "cut" {
			w.cut()
		}
		if end == "close" { // the box is a joined one
			require.NoError(t, box.Close())
		} else {
			require.NoError(t, box.Detach())
		}

		if end == "cut" {
			box, err = shellbox.Join(ctx, connect(t, w, true), options)
		} else {
			box, err = shellbox.Attach(ctx, connect(t, w, false), options)
		}
		require.NoError(t, err)
		found := func(id string) sandbox.Job {
			j, ok := box.Job(id)
			require.True(t, ok, id)
			return j
		}
		r, err = found(job.ID()).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 3, r.ExitCode)
		require.Equal(t, "begun\n", r.Output)
		r, err = found(asks.ID()).Wait(ctx)
		require.NoError(t, err)
		require.Contains(t, r.Output, "job input\n")
		require.NoError(t, os.WriteFile(filepath.Join(w.b.dir, "go"), nil, 0o600))
		r, err = box.Wait(ctx)
		require.NoError(t, err)
		require.Contains(t, r.Output, "executed\n")
		s, ok := box.Session(reads.ID())
		require.True(t, ok)
		r, err = s.Wait(ctx)
		require.NoError(t, err)
		require.Contains(t, r.Output, "typed\n30 100\n")
	}
	require.NoError(t, box.Close())
}
