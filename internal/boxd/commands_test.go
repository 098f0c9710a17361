//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A way is a place of a box whose connections a test can cut.
type way struct {
	b  *box
	mu sync.Mutex
	on *joined
}

type uttering struct{ *joined }

func (uttering) Said() string { return "" }

func (w *way) Join(context.Context) (client.Streams, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on = w.b.dial()
	return uttering{w.on}, nil
}

// Control is boxd's own standard streams, as the engine has them.
func (w *way) Control(context.Context) (client.Streams, error) { return own{w.b}, nil }

// own is the standard streams of the process that is boxd.
type own struct{ b *box }

func (o own) Read(p []byte) (int, error)     { return o.b.out.Read(p) }
func (o own) Write(p []byte) (int, error)    { return o.b.in.Write(p) }
func (own) Close() error                     { return nil }
func (own) LocalAddr() net.Addr              { return nil }
func (own) RemoteAddr() net.Addr             { return nil }
func (own) SetDeadline(time.Time) error      { return nil }
func (own) SetReadDeadline(time.Time) error  { return nil }
func (own) SetWriteDeadline(time.Time) error { return nil }
func (own) Said() string                     { return "" }

func (w *way) Diagnose(context.Context) client.Diagnosis { return client.Diagnosis{} }

// cut ends the last connection. What is in the pipes still arrives. Neither end is told of the cut.
func (w *way) cut() {
	w.mu.Lock()
	on := w.on
	w.mu.Unlock()
	on.Close()
}

func newHost(t testing.TB) (*client.Host, *way) {
	w := &way{b: startBox(t)}
	return w.connect(t), w
}

// connect returns a host for the box, whose owner it is.
func (w *way) connect(t testing.TB) *client.Host { return connect(t, w, false) }

// connect returns a host for the box of a place.
func connect(t testing.TB, place client.Place, joins bool) *client.Host {
	// t's has ended in a Cleanup
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
	defer cancel()
	h, err := client.Connect(ctx, client.Config{
		Name: "box", Place: place, Patience: time.Minute, Keep: true, Joins: joins,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestCommands(t *testing.T) {
	h, w := newHost(t)
	before := w.b.steady()
	hosttest.Commands(t, h)
	w.b.settled(before)
}

func TestPrograms(t *testing.T) {
	h, w := newHost(t)
	before := w.b.steady()
	hosttest.Programs(t, h)
	w.b.settled(before)
}

func TestUsers(t *testing.T) {
	h, w := newHost(t)
	before := w.b.steady()
	hosttest.Users(t, h)
	w.b.settled(before)
}

func TestDiscard(t *testing.T) {
	h, _ := newHost(t)
	hosttest.Discard(t, h)
}

// Connections are cut in the middle of long command lines, while input is typed too. Nothing is
// lost and nothing comes twice.
func TestCommandsCut(t *testing.T) {
	h, w := newHost(t)
	s := hosttest.StartShell(t, h, "bash", "--norc", "--noediting", "-i")
	s.Say(t, "stty -echo </dev/tty; echo up\n")
	s.Shows(t, "up\n")
	var want strings.Builder
	for i := range 20 {
		var cutting sync.WaitGroup
		cutting.Go(func() {
			time.Sleep(time.Duration(rand.IntN(10_000)) * time.Microsecond)
			w.cut()
		})
		s.Type(t, fmt.Sprintf("typed %d\n", i))
		word := strings.Repeat(fmt.Sprintf("%07d ", i), 25<<10) // 200 KiB
		s.Say(t, fmt.Sprintf("x='%s'; case $x in *[!0-9\\ ]*) echo wrong;; esac; read -r y "+
			"</dev/tty; echo \"%d: ${#x} ${x:204792:7} $y\"\n", word, i))
		fmt.Fprintf(&want, "%d: 204800 %07d typed %d\n", i, i, i)
		s.Shows(t, fmt.Sprintf("\n%d: 204800", i))
		cutting.Wait()
	}
	s.Shows(t, " typed 19\n")
	if got := s.Shown(); !strings.HasSuffix(got, want.String()) {
		t.Errorf("got %.2000q", got)
	}
}

// A host that attaches to a shell continues to write its commands.
func TestCommandsAttach(t *testing.T) {
	h, w := newHost(t)
	s := hosttest.StartShell(t, h)
	s.Say(t, "x=1; echo up\n")
	s.Shows(t, "up\n")
	if err := h.Detach(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	h.Close()
	next := w.connect(t)
	defer next.Close()
	kept, err := next.Kept(t.Context())
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	p := kept[0].Process.(shellbox.Process)
	go fmt.Fprintln(p.Commands(), "echo is $((x+1)); exit 3")
	r := hosttest.Finish(p)
	if !strings.HasSuffix(r.Stdout, "is 2\n") || r.Status.Code != 3 {
		t.Errorf("got %+v", r)
	}
}
