package placetest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing/fstest"
	"time"

	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// life starts boxes, finds them, takes one over by another process, deletes it, and uses its ID
// again.
func (s *suite) life() {
	first, second := s.open(), s.open()
	// An ID may be longer than the names and labels of an engine.
	const long = "Long.ID_" +
		"0123456789012345678901234567890123456789012345678901234567890123456789-"
	a := s.start(first, service.StartOptions{ID: long, Owner: "me, \"x\"=é",
		Env: []string{"TOKEN=secret"}, Files: fstest.MapFS{"file": {Data: []byte("mine")}}})
	require.Equal(s, place.Running, a.Status)
	require.Equal(s, "secret mine\n", s.execute(first, long, "X=5; echo $TOKEN $(cat file)"))
	got, err := second.Get(s.Context(), long)
	require.NoError(s, err)
	require.Equal(s, a, got, "the other process finds it")
	b := s.start(second, service.StartOptions{ID: "b", Owner: "you"})

	for limit := range 3 {
		var ids []string
		for page, more := "", true; more; more = page != "" {
			p, err := first.Search(s.Context(), service.Query{Limit: limit, Page: page})
			require.NoError(s, err)
			for _, i := range p.Items {
				ids = append(ids, i.ID)
			}
			page = p.Next
		}
		require.Equal(s, []string{"b", long}, ids, "the newest first")
	}
	p, err := first.Search(s.Context(), service.Query{Owner: "you", Status: place.Running})
	require.NoError(s, err)
	require.Equal(s, []*service.Info{b}, p.Items)
	infos, err := first.BatchGet(s.Context(), []string{"b", "none", long})
	require.ErrorIs(s, err, place.ErrNotFound)
	require.Equal(s, []*service.Info{b, nil, a}, infos)

	_, err = second.Start(s.Context(), service.StartOptions{ID: long, Owner: "you"})
	require.ErrorIs(s, err, place.ErrConflict, "another owner")
	again := s.start(second, service.StartOptions{ID: long, Owner: "me, \"x\"=é"})
	require.Equal(s, a.SessionKey, again.SessionKey)
	before, err := first.Open(s.Context(), long)
	require.NoError(s, err)
	require.Equal(s, "5\n", s.execute(second, long, "echo $X; X=6"), "with its shell")
	r, err := before.Execute(s.Context(), "echo $X")
	require.NoError(s, err)
	require.Equal(s, "6\n", r.Output, "it has the box too")

	s.usage(first, "b")
	require.NoError(s, second.Delete(s.Context(), long))
	_, err = first.Get(s.Context(), long)
	require.ErrorIs(s, err, place.ErrNotFound)
	require.ErrorIs(s, first.Delete(s.Context(), long), place.ErrNotFound)
	fresh := s.start(first, service.StartOptions{ID: long, Owner: "you"})
	require.NotEqual(s, a.SessionKey, fresh.SessionKey, "another box")
	require.Equal(s, "\n", s.execute(first, long, "echo $X"))
}

// usage checks Usage, if the place has it.
func (s *suite) usage(svc *service.Service, id string) {
	s.execute(svc, id, "sleep 100 & sleep 100 &")
	u, err := svc.Usage(s.Context(), id)
	if s.unsupported(err) {
		return
	}
	require.GreaterOrEqual(s, u.PIDs, int64(3))
	require.Positive(s, u.Memory)
	require.Positive(s, u.CPU)
	require.Greater(s, u.MemoryLimit, u.Memory)
	require.Zero(s, u.OOMKills)
}

// notes checks that a Note that is not made from the newest one is ErrConflict, and that the handle
// of a box that is gone is ErrNotFound.
func (s *suite) notes() {
	svc, p := s.open(), s.bare()
	s.start(svc, service.StartOptions{ID: "a", Owner: "me"})
	r := s.record(p, "a")
	full := place.Note{
		Owner: "me", Created: r.Created, Started: time.Unix(0, 1),
		Used: r.Note.Used.Add(time.Second), Paused: time.Unix(0, 3), Generation: 4, Dir: "/a \"b\"",
		Kept: place.KeptFiles, Checkpoint: "c", Version: r.Note.Version,
		Metadata: map[string]string{"team": "a, \"b\"=é"}, Ends: time.Unix(4e9, 5),
		Egress: []string{"GET,POST https://a.example.com/b/*", "b.example.com"},
		Hosts:  []string{}, WakeFor: time.Hour,
	}
	require.Nil(s, r.Note.Egress)
	require.Nil(s, r.Note.Hosts)
	require.NoError(s, p.Note(s.Context(), r.Handle, full))
	got := s.record(p, "a").Note
	require.Greater(s, got.Version, full.Version)
	full.Version = got.Version
	require.Equal(s, full, *got)
	require.ErrorIs(s, p.Note(s.Context(), r.Handle, *r.Note), place.ErrConflict,
		"it is made from the older note")
	require.Equal(s, full, *s.record(p, "a").Note)

	box, err := p.Attach(s.Context(), r.Handle)
	require.NoError(s, err)
	busy, since := box.Activity()
	require.False(s, busy)
	require.False(s, since.After(time.Now()))
	require.NoError(s, box.Lost(s.Context()))
	require.NoError(s, box.Detach())
	require.NoError(s, p.Remove(s.Context(), r.Handle))
	require.NoError(s, p.Remove(s.Context(), r.Handle), "it is gone")
	_, err = p.Attach(s.Context(), r.Handle)
	require.ErrorIs(s, err, place.ErrNotFound)
	records, err := p.List(s.Context(), "")
	require.NoError(s, err)
	require.Empty(s, records)
}

// together has two processes start one ID at once. They get one box.
func (s *suite) together() {
	first, second := s.open(), s.open()
	type outcome struct {
		info *service.Info
		err  error
	}
	outcomes := make(chan outcome, 4)
	for range 2 {
		for _, svc := range []*service.Service{first, second} {
			go func() {
				i, err := svc.Start(s.Context(), service.StartOptions{ID: "a",
					Env: []string{"BOX=a"}})
				outcomes <- outcome{i, err}
			}()
		}
	}
	keys := map[string]bool{}
	for range 4 {
		o := <-outcomes
		require.NoError(s, o.err)
		keys[o.info.SessionKey] = true
	}
	require.Len(s, keys, 1)
	require.Equal(s, "a\n", s.execute(second, "a", "echo $BOX"))
	records, err := s.bare().List(s.Context(), "")
	require.NoError(s, err)
	require.Len(s, records, 1)
}

// pool checks that a box in a pool is not found until it gets its ID, and that it cannot get the ID
// of another box.
func (s *suite) pool() {
	p := s.bare()
	spec := s.specOf("small", 0)
	create := func(id string) string {
		box, handle, err := p.Create(s.Context(), place.Request{ID: id, Spec: spec.ID,
			Config: spec.Config, Created: time.Now().Round(0)})
		require.NoError(s, err)
		require.NoError(s, box.Detach())
		return handle
	}
	first, second := create(""), create("taken")
	svc := s.open()
	page, err := svc.Search(s.Context(), service.Query{})
	require.NoError(s, err)
	require.Len(s, page.Items, 1, "a box in a pool is not found")
	require.Equal(s, place.Starting, page.Items[0].Status, "without a note it is being started")
	require.ErrorIs(s, p.Name(s.Context(), first, "taken"), place.ErrConflict)
	require.NoError(s, p.Name(s.Context(), first, "a"))
	require.Equal(s, first, s.record(p, "a").Handle)
	require.NoError(s, p.Note(s.Context(), first, place.Note{Owner: "me", Created: time.Now(),
		Started: time.Now()}))
	i, err := svc.Get(s.Context(), "a")
	require.NoError(s, err)
	require.Equal(s, "me", i.Owner)
	require.Equal(s, place.Running, i.Status)
	require.Equal(s, "here\n", s.execute(svc, "a", "echo here"))

	require.NoError(s, p.Remove(s.Context(), second))
	third := create("")
	require.NoError(s, p.Name(s.Context(), third, "taken"), "it is free again")
	require.NoError(s, p.Remove(s.Context(), third))
	require.ErrorIs(s, p.Name(s.Context(), third, "gone"), place.ErrNotFound)
}

// watch checks that Watch sends an event when another process starts or deletes a box.
func (s *suite) watch() {
	watching, svc := s.open(), s.open()
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	s.start(svc, service.StartOptions{ID: "before"})
	events, err := watching.Watch(ctx)
	require.NoError(s, err)
	expect := func(id string, status place.Status) {
		s.Helper()
		for {
			select {
			case e := <-events:
				require.NotZero(s, e.Time)
				if e.ID == id && e.Status == status {
					return
				}
			case <-time.After(time.Minute):
				s.Fatalf("there is no event that %s is %s", id, status)
			}
		}
	}
	s.start(svc, service.StartOptions{ID: "a"})
	expect("a", place.Starting)
	expect("a", place.Running)
	for _, id := range []string{"a", "before"} {
		require.NoError(s, svc.Delete(s.Context(), id))
		expect(id, place.Missing)
	}
	stop()
	for range events {
	}
}

// cannot checks that the error of what a place cannot do is errors.ErrUnsupported and says why, and
// that the box runs on.
func (s *suite) cannot() {
	svc := s.open()
	s.start(svc, service.StartOptions{ID: "a"})
	s.execute(svc, "a", "X=5")
	pausing := svc.Pause(s.Context(), "a")
	answer := httptest.NewRecorder()
	service.Handler(svc, service.HandlerConfig{}).ServeHTTP(answer,
		httptest.NewRequestWithContext(s.Context(), "POST", "/sandboxes/a/pause", nil))
	if s.unsupported(pausing) {
		require.Equal(s, http.StatusNotImplemented, answer.Code)
		var said struct{ Detail string }
		require.NoError(s, json.Unmarshal(answer.Body.Bytes(), &said))
		require.Equal(s, pausing.Error(), said.Detail)
	} else {
		require.Equal(s, http.StatusOK, answer.Code)
		i, err := svc.Get(s.Context(), "a")
		require.NoError(s, err)
		require.Equal(s, place.Paused, i.Status)
		_, err = svc.Open(s.Context(), "a")
		require.ErrorIs(s, err, place.ErrConflict)
	}
	require.NoError(s, svc.Resume(s.Context(), "a"))
	require.Equal(s, "5\n", s.execute(svc, "a", "echo $X"))
	if !errors.Is(pausing, errors.ErrUnsupported) {
		return // such a place has tests of its own for Suspend and Snapshot
	}
	for _, what := range []func() error{
		func() error { return svc.Suspend(s.Context(), "a") },
		func() error { _, err := svc.Snapshot(s.Context(), "a"); return err },
	} {
		require.True(s, s.unsupported(what()))
		require.Equal(s, "5\n", s.execute(svc, "a", "echo $X"))
	}
}

// fork checks that the copies of a box are boxes with its files and variables, or that the error is
// errors.ErrUnsupported and says why.
func (s *suite) fork() {
	svc, p := s.open(), s.bare()
	s.start(svc, service.StartOptions{ID: "a"})
	s.execute(svc, "a", "X=5; cd /tmp; echo 6 >f")
	ids := []string{"b", "c"}
	copies, err := svc.Fork(s.Context(), "a", 2, service.ForkOptions{IDs: ids})
	defer func() { require.Equal(s, "5\n", s.execute(svc, "a", "echo $X")) }()
	if s.unsupported(err) {
		records, err := p.List(s.Context(), "")
		require.NoError(s, err)
		require.Len(s, records, 1)
		return
	}
	for i, id := range ids {
		require.Equal(s, id, copies[i].ID)
		require.Equal(s, place.KeptShells, s.record(p, id).Note.Kept)
		require.Equal(s, "5 6 /tmp\n", s.execute(svc, id, "echo $X $(cat f) $PWD"))
		require.NoError(s, svc.Delete(s.Context(), id))
	}
}

// failed checks that a start that fails or is cancelled leaves no box, and the ID free.
func (s *suite) failed() {
	shell := s.specOf("shell", 0)
	shell.Config.Shell = []string{"no-such-shell"}
	svc, p := s.open(s.specOf("small", 0), shell), s.bare()
	_, err := svc.Start(s.Context(), service.StartOptions{ID: "a", Spec: "shell"})
	require.ErrorContains(s, err, "no-such-shell")
	_, err = svc.Start(s.Context(), service.StartOptions{ID: "a", Spec: "small", Files: brokenFS{}})
	require.ErrorIs(s, err, errBroken)
	for _, after := range []time.Duration{0, 30 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(s.Context(), after)
		_, err := svc.Start(ctx, service.StartOptions{ID: "a", Spec: "small"})
		cancel()
		if err == nil { // the start was faster than the timeout
			require.NoError(s, svc.Delete(s.Context(), "a"))
			continue
		}
		require.ErrorIs(s, err, context.DeadlineExceeded)
	}
	records, err := p.List(s.Context(), "")
	require.NoError(s, err)
	require.Empty(s, records)
	s.start(svc, service.StartOptions{ID: "a", Spec: "small"})
}

var errBroken = errors.New("broken")

type brokenFS struct{}

func (brokenFS) Open(string) (fs.File, error) { return nil, errBroken }
