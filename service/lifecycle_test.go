package service

import (
	"net/http"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

func TestDue(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	running := func(started time.Duration) *place.Record {
		return &place.Record{Status: Running, Note: &place.Note{Started: ago(started)}}
	}
	paused := func(since time.Time) *place.Record {
		return &place.Record{Status: Paused, Note: &place.Note{Paused: since}}
	}
	const min, hour, day = time.Minute, time.Hour, 24 * time.Hour
	for _, c := range []struct {
		name string
		r    *place.Record
		used time.Duration // ago
		held bool
		l    Lifecycle
		want fate
	}{
		{"in use", running(hour), 0, true, DefaultLifecycle, nothing},
		{"nearly idle", running(hour), 19 * min, true, DefaultLifecycle, nothing},
		{"idle", running(hour), 20 * min, true, DefaultLifecycle, toPause},
		{"idle, as far as this process knows", running(hour), 29 * min, false, DefaultLifecycle,
			nothing},
		{"idle, whoever has it", running(hour), 30 * min, false, DefaultLifecycle, toPause},
		{"a long session", running(12 * hour), 0, true, DefaultLifecycle, toPause},
		{"off", running(100 * day), 100 * day, true, Lifecycle{}, nothing},
		{"paused", paused(ago(9 * day)), 9 * day, false, DefaultLifecycle, nothing},
		{"paused for long", paused(ago(10 * day)), 0, false, DefaultLifecycle, toDelete},
		{"paused by somebody", paused(time.Time{}), 100 * day, false, DefaultLifecycle, toDate},
		{"paused for ever", paused(ago(1000 * day)), 0, false, Lifecycle{}, nothing},
		{"starting", &place.Record{Status: Starting}, 100 * day, false, DefaultLifecycle, nothing},
		{"unknown", &place.Record{Status: Unknown, Note: &place.Note{Paused: ago(100 * day)}},
			100 * day, false,
			DefaultLifecycle, nothing},
		{"failed", &place.Record{Status: Error, Note: &place.Note{Paused: ago(100 * day)}},
			100 * day, false,
			DefaultLifecycle, nothing},
	} {
		got, _ := c.l.due(c.r, now.Add(-c.used), c.held, now)
		require.Equal(t, c.want, got, c.name)
	}
}

// A box is paused when nothing goes on in it any more: no command, job, connection or request; and
// deleted when it has not run for long.
func TestIdle(t *testing.T) {
	t.Parallel()
	const idle = 200 * time.Millisecond
	s := open(t, aName(t), func(o *Config) {
		o.Every = 50 * time.Millisecond
	}, small("idle", func(s *Spec) {
		s.Lifecycle = Lifecycle{Idle: idle}
		s.Health = &Health{Port: 1} // its questions are no use
	}))
	start(t, s, StartOptions{ID: "a"})
	paused := func() bool {
		i, err := s.Get(t.Context(), "a")
		require.NoError(t, err)
		return i.Status == Paused
	}
	busyFor := func(what string, begin func(box sandbox.Sandbox) (end func())) {
		t.Helper()
		used := s.Used("a")
		require.NoError(t, s.Resume(t.Context(), "a"))
		box, err := s.Open(t.Context(), "a")
		require.NoError(t, err)
		end := begin(box)
		used()
		for until := time.Now().Add(3 * idle); time.Now().Before(until); time.Sleep(
			10 * time.Millisecond) {
			require.False(t, paused(), "with "+what)
		}
		end()
		eventually(t, "idle after "+what, paused)
	}
	eventually(t, "idle from the start", paused)
	busyFor("a command", func(box sandbox.Sandbox) func() {
		_, err := box.Execute(t.Context(), "read x", sandbox.Yield(time.Millisecond))
		require.NoError(t, err)
		return func() {
			_, err := box.Input(t.Context(), "\n")
			require.NoError(t, err)
		}
	})
	busyFor("a job", func(box sandbox.Sandbox) func() {
		job, err := box.Background(t.Context(), "while :; do sleep 1; done")
		require.NoError(t, err)
		return func() { require.NoError(t, job.Kill(t.Context())) }
	})
	busyFor("a connection", func(box sandbox.Sandbox) func() {
		job, err := box.Background(t.Context(), "nc -l -p 9000 >/dev/null")
		require.NoError(t, err)
		var conn interface{ Close() error }
		eventually(t, "somebody listens", func() bool {
			conn, err = box.Dial(t.Context(), "tcp", "127.0.0.1:9000")
			return err == nil
		})
		return func() {
			require.NoError(t, conn.Close())
			require.NoError(t, job.Kill(t.Context()))
		}
	})
	busyFor("a request", func(sandbox.Sandbox) func() { return s.Used("a") })

	require.NoError(t, s.store.(*MemorySpecs).Set(small("idle", func(s *Spec) {
		s.Lifecycle = Lifecycle{Keep: 300 * time.Millisecond}
	})))
	eventually(t, "deleted when it has not run for long", func() bool {
		return status(t, s, "a") == ""
	})
}

// When too many run, the least recently used is paused first.
func TestMaxRunning(t *testing.T) {
	t.Parallel()
	s := open(t, aName(t), nil, small("few", func(s *Spec) { s.Lifecycle.MaxRunning = 2 }))
	start(t, s, StartOptions{ID: "a"})
	start(t, s, StartOptions{ID: "b"})
	says(t, s, "a", "echo used")
	start(t, s, StartOptions{ID: "c"})
	require.Equal(t, map[string]Status{"a": Running, "b": Paused, "c": Running}, there(t, s, nil))
	require.NoError(t, s.Resume(t.Context(), "b"))
	require.Equal(t, map[string]Status{"a": Paused, "b": Running, "c": Running}, there(t, s, nil))
	start(t, s, StartOptions{ID: "b"})
	require.Equal(t, map[string]Status{"a": Paused, "b": Running, "c": Running}, there(t, s, nil),
		"it runs already")
}

// A box that does not serve is Starting at first, then Running; one that does not serve later is in
// Error.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := open(t, aName(t), func(o *Config) {
		o.URL = func(id string, p Port) string {
			return "http://" + p.Name + "-" + id + ".example.com"
		}
	}, small("web", func(s *Spec) {
		s.Ports = []Port{{"web", 8000}}
		s.Health = &Health{Port: 8000, Path: "/ready"}
	}))
	i := start(t, s, StartOptions{ID: "a"})
	require.Equal(t, Starting, i.Status)
	require.Contains(t, i.Detail, "does not serve yet")
	require.Empty(t, i.URLs)
	require.Empty(t, i.SessionKey)
	box, err := s.Open(t.Context(), "a")
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		_, err := s.WaitRunning(t.Context(), "a")
		waited <- err
	}()
	says(t, s, "a", "mkdir /www; echo yes >/www/ready")
	serve, err := box.Background(t.Context(), "httpd -f -p 8000 -h /www")
	require.NoError(t, err)
	require.NoError(t, <-waited)
	i, err = s.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, Running, i.Status)
	require.Equal(t, []URL{{"web", "http://web-a.example.com", 8000}}, i.URLs)
	require.NotEmpty(t, i.SessionKey)

	says(t, s, "a", "rm /www/ready")
	require.Equal(t, Starting, status(t, s, "a"), http.StatusText(http.StatusNotFound))
	require.NoError(t, serve.Kill(t.Context()))
	r := record(t, s, "a")
	require.NoError(t, s.note(t.Context(), r, func(n *place.Note) {
		n.Started = time.Now().Add(-healthGrace)
	}))
	i, err = s.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, Error, i.Status)
	require.Contains(t, i.Detail, "does not serve")
	p, err := s.Search(t.Context(), Query{Status: Error})
	require.NoError(t, err)
	require.Len(t, p.Items, 1)
	_, err = s.WaitRunning(t.Context(), "a")
	require.ErrorIs(t, err, ErrConflict)
}
