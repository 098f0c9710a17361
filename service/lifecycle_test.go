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
		name      string
		r         *place.Record
		used      time.Duration // ago
		connected bool
		l         Lifecycle
		want      dueAction
	}{
		{"in use", running(hour), 0, true, DefaultLifecycle, dueNothing},
		{"nearly idle", running(hour), 19 * min, true, DefaultLifecycle, dueNothing},
		{"idle", running(hour), 20 * min, true, DefaultLifecycle, duePause},
		{"idle, as far as this process knows", running(hour), 29 * min, false, DefaultLifecycle,
			dueNothing},
		{"idle for every process", running(hour), 30 * min, false, DefaultLifecycle, duePause},
		{"a long session", running(12 * hour), 0, true, DefaultLifecycle, duePause},
		{"off", running(100 * day), 100 * day, true, Lifecycle{}, dueNothing},
		{"paused", paused(ago(9 * day)), 9 * day, false, DefaultLifecycle, dueNothing},
		{"paused for long", paused(ago(10 * day)), 0, false, DefaultLifecycle, dueDelete},
		{"paused by somebody", paused(time.Time{}), 100 * day, false, DefaultLifecycle, dueDate},
		{"paused for ever", paused(ago(1000 * day)), 0, false, Lifecycle{}, dueNothing},
		{"starting", &place.Record{Status: Starting}, 100 * day, false, DefaultLifecycle,
			dueNothing},
		{"unknown", &place.Record{Status: Unknown, Note: &place.Note{Paused: ago(100 * day)}},
			100 * day, false,
			DefaultLifecycle, dueNothing},
		{"failed", &place.Record{Status: Error, Note: &place.Note{Paused: ago(100 * day)}},
			100 * day, false,
			DefaultLifecycle, dueNothing},
	} {
		got, _ := c.l.due(c.r, now.Add(-c.used), c.connected, now)
		require.Equal(t, c.want, got, c.name)
	}
}

// TestIdle checks that a box is paused when no command, job, connection or request goes on in it,
// and that it is deleted when it has not run for long.
func TestIdle(t *testing.T) {
	t.Parallel()
	const idle = 200 * time.Millisecond
	s := open(t, uniqueName(t), func(o *Config) {
		o.Every = 50 * time.Millisecond
	}, small("idle", func(s *Spec) {
		s.Lifecycle = Lifecycle{Idle: idle}
		s.Health = &Health{Port: 1} // health checks do not count as use
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

// TestMaxRunning checks that the least recently used box is paused when too many run.
func TestMaxRunning(t *testing.T) {
	t.Parallel()
	s := open(t, uniqueName(t), nil, small("few", func(s *Spec) { s.Lifecycle.MaxRunning = 2 }))
	start(t, s, StartOptions{ID: "a"})
	start(t, s, StartOptions{ID: "b"})
	execute(t, s, "a", "echo used")
	start(t, s, StartOptions{ID: "c"})
	require.Equal(t, map[string]Status{"a": Running, "b": Paused, "c": Running},
		statusByID(t, s, nil))
	require.NoError(t, s.Resume(t.Context(), "b"))
	want := map[string]Status{"a": Paused, "b": Running, "c": Running}
	require.Equal(t, want, statusByID(t, s, nil))
	start(t, s, StartOptions{ID: "b"})
	require.Equal(t, want, statusByID(t, s, nil), "it runs already")
}

// TestHealth checks the status of a box: Starting until it serves, then Running, and Error if it
// does not serve later.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := open(t, uniqueName(t), func(o *Config) {
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
	execute(t, s, "a", "mkdir /www; echo yes >/www/ready")
	serve, err := box.Background(t.Context(), "httpd -f -p 8000 -h /www")
	require.NoError(t, err)
	require.NoError(t, <-waited)
	i, err = s.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, Running, i.Status)
	require.Equal(t, []URL{{"web", "http://web-a.example.com", 8000}}, i.URLs)
	require.NotEmpty(t, i.SessionKey)

	execute(t, s, "a", "rm /www/ready")
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
	require.ErrorContains(t, err, "it is ERROR (it does not serve: ")
	require.NoError(t, s.Pause(t.Context(), "a"))
	_, err = s.WaitRunning(t.Context(), "a")
	require.EqualError(t, err,
		`wait for box "a": conflict: it is PAUSED: Resume it first`)
}
