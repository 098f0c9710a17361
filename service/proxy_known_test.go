package service

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// A countingPlace counts the questions to a Place.
type countingPlace struct {
	place.Place
	asked atomic.Int64
}

func (p *countingPlace) List(ctx context.Context, id string) ([]*place.Record, error) {
	p.asked.Add(1)
	return p.Place.List(ctx, id)
}

func (p *countingPlace) Attach(ctx context.Context, handle string) (place.Attached, error) {
	p.asked.Add(1)
	return p.Place.Attach(ctx, handle)
}

// A knownProxy is a Proxy whose process is not the one that changes the boxes.
type knownProxy struct {
	handler http.Handler
	*Service
}

// get asks the box's port, where nobody listens, and returns the status of the answer: 502 means
// that the box was asked.
func (p *knownProxy) get(t *testing.T, id, key string) int {
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "GET", "http://web-"+id+".boxes.localhost/", nil)
	header(key)(r)
	p.handler.ServeHTTP(w, r)
	return w.Code
}

// waitFor waits until the proxy's answer has a status. So long, it may have a status of before.
func (p *knownProxy) waitFor(t *testing.T, id, key string, status, before int) {
	t.Helper()
	eventually(t, http.StatusText(status), func() bool {
		got := p.get(t, id, key)
		require.Contains(t, []int{status, before}, got)
		return got == status
	})
}

func newKnownProxy(t *testing.T, name string, on place.Place, specs ...*Spec) *knownProxy {
	s := open(t, name, func(o *Config) { o.Place = on }, specs...)
	base := &url.URL{Scheme: "http", Host: "boxes.localhost"}
	return &knownProxy{Proxy(s, ProxyConfig{URL: base}), s}
}

// isKnown waits until requests for a box do not ask the place.
func (p *knownProxy) isKnown(t *testing.T, id, key string) {
	t.Helper()
	eventually(t, "the box is known", func() bool {
		require.Equal(t, http.StatusBadGateway, p.get(t, id, key))
		r, _ := p.known.get(id)
		return r != nil
	})
}

// TestProxyKnown checks that the proxy does not ask the engine about a box that it knows, and that
// it hears of what other processes do with the box. The others are not connected to the box: an
// exec that begins while the engine pauses a container blocks the container's unpause.
func TestProxyKnown(t *testing.T) {
	testenv.NeedsAll(t, "it starts boxes again and again; TestProxyNotWatched stands in for it")
	t.Parallel()
	name := uniqueName(t)
	specs := []*Spec{small("web", func(s *Spec) { s.Ports = []Port{{"web", 8000}} }),
		small("wakes", func(s *Spec) {
			s.Ports = []Port{{"web", 8000}}
			s.Lifecycle.Wake = true
		})}
	counted := &countingPlace{Place: placeOn(nil)}
	p, other := newKnownProxy(t, name, counted, specs...), open(t, name, nil, specs...)
	ctx := t.Context()
	key := start(t, p.Service, StartOptions{ID: "a", Spec: "web"}).SessionKey

	p.isKnown(t, "a", key)
	before := counted.asked.Load()
	for range 100 {
		require.Equal(t, http.StatusBadGateway, p.get(t, "a", key))
	}
	require.Equal(t, before, counted.asked.Load(), "the engine was asked")
	require.Equal(t, http.StatusUnauthorized, p.get(t, "a", "wrong"))
	require.Equal(t, http.StatusUnauthorized, p.get(t, "a", key+"x"))

	require.NoError(t, other.Pause(ctx, "a"))
	p.waitFor(t, "a", key, http.StatusServiceUnavailable, http.StatusServiceUnavailable)
	require.NoError(t, other.Resume(ctx, "a"))
	p.waitFor(t, "a", key, http.StatusBadGateway, http.StatusServiceUnavailable)

	p.isKnown(t, "a", key)
	d := dockertest.Engine(t, dockertest.Busybox)
	handle := record(t, other, "a").Handle
	_, err := d.ContainerKill(ctx, handle, client.ContainerKillOptions{})
	require.NoError(t, err)
	p.waitFor(t, "a", key, http.StatusServiceUnavailable, http.StatusBadGateway)
	require.NoError(t, other.Resume(ctx, "a"))
	p.waitFor(t, "a", key, http.StatusUnauthorized, http.StatusServiceUnavailable)
	i, err := other.Get(ctx, "a")
	require.NoError(t, err)
	p.isKnown(t, "a", i.SessionKey)
	require.Equal(t, http.StatusUnauthorized, p.get(t, "a", key), "the key of the start before")

	require.NoError(t, other.Delete(ctx, "a"))
	eventually(t, "the box is gone", func() bool {
		return p.get(t, "a", i.SessionKey) == http.StatusUnauthorized
	})
	again := start(t, p.Service, StartOptions{ID: "a", Spec: "web"}).SessionKey
	p.isKnown(t, "a", again)
	require.Equal(t, http.StatusUnauthorized, p.get(t, "a", i.SessionKey), "another box by that id")
	require.NoError(t, other.Delete(ctx, "a"))

	key = start(t, p.Service, StartOptions{ID: "w", Spec: "wakes"}).SessionKey
	p.isKnown(t, "w", key)
	require.NoError(t, other.Pause(ctx, "w"))
	require.Equal(t, http.StatusBadGateway, p.get(t, "w", key), "it has woken")
	require.Equal(t, Running, status(t, other, "w"))
	require.NoError(t, other.Pause(ctx, "w"))
	require.Equal(t, http.StatusUnauthorized, p.get(t, "w", key+"x"))
	require.Equal(t, Paused, status(t, other, "w"), "a wrong key wakes no box")
	require.Equal(t, "here\n", execute(t, p.Service, "w", "echo here"), "Open has woken it")

	handle = record(t, other, "w").Handle
	_, err = d.ContainerKill(ctx, handle, client.ContainerKillOptions{})
	require.NoError(t, err)
	p.waitFor(t, "w", key, http.StatusServiceUnavailable, http.StatusBadGateway)
	require.Equal(t, Paused, status(t, other, "w"), "nothing there would answer")
	require.Equal(t, "here\n", execute(t, other, "w", "echo here"), "Open has started it again")
	p.waitFor(t, "w", key, http.StatusUnauthorized, http.StatusServiceUnavailable)
	require.NoError(t, other.Delete(ctx, "w"))
}

// TestProxyNotWatched checks that the proxy asks again while it does not hear from the engine.
func TestProxyNotWatched(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	spec := small("web", func(s *Spec) { s.Ports = []Port{{"web", 8000}} })
	link := newEngineLink(t)
	p, other := newKnownProxy(t, name, placeOn(link.docker), spec), open(t, name, nil, spec)
	key := start(t, p.Service, StartOptions{ID: "a"}).SessionKey
	p.isKnown(t, "a", key)

	link.cut()
	eventually(t, "the proxy has noticed", func() bool {
		r, _ := p.known.get("a")
		return r == nil
	})
	require.Equal(t, http.StatusServiceUnavailable, p.get(t, "a", key))
	require.NoError(t, other.Delete(t.Context(), "a"))
	next := start(t, other, StartOptions{ID: "a"}).SessionKey
	link.mend()
	require.Equal(t, http.StatusUnauthorized, p.get(t, "a", key))
	p.isKnown(t, "a", next)
	require.NoError(t, other.Delete(t.Context(), "a"))
}

// TestKnown checks which records are kept.
func TestKnown(t *testing.T) {
	running := func() *place.Record {
		return &place.Record{ID: "a", Handle: "h", Status: Running, Note: &place.Note{}}
	}
	keeps := func(k *known, r *place.Record, changes int) bool {
		k.put(r, changes)
		got, _ := k.get("a")
		k.forget("a")
		return got != nil
	}
	var k known
	latest := func() int { _, changes := k.get("a"); return changes }
	require.False(t, keeps(&k, running(), latest()), "nobody watches")
	k.watch(true)
	require.True(t, keeps(&k, running(), latest()))
	old := latest()
	k.forget("b")
	require.False(t, keeps(&k, running(), old), "asked for before a change")
	for name, change := range map[string]func(*place.Record){
		"paused":             func(r *place.Record) { r.Status = Paused },
		"started":            func(r *place.Record) { r.Note = nil },
		"the note lags":      func(r *place.Record) { r.Note.Paused = time.Now() },
		"suspended till now": func(r *place.Record) { r.Note.Checkpoint = "c" },
	} {
		r := running()
		change(r)
		require.False(t, keeps(&k, r, latest()), name)
	}
	for name, change := range map[string]func(*place.Record){
		"paused":  func(r *place.Record) { r.Status = Paused },
		"another": func(r *place.Record) { r.Handle = "i" },
		"gone":    func(r *place.Record) { r.ID = "b" },
		"anew":    func(r *place.Record) { r.Note.Generation++ },
	} {
		k.put(running(), latest())
		k.compare([]*place.Record{running()})
		got, _ := k.get("a")
		require.NotNil(t, got, name)
		r := running()
		change(r)
		k.compare([]*place.Record{r})
		got, _ = k.get("a")
		require.Nil(t, got, name)
	}
	k.put(running(), latest())
	k.watch(false)
	got, _ := k.get("a")
	require.Nil(t, got, "the watch is lost")
}
