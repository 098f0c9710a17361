package service

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/service/place"
)

// TestEnd: a box is gone when its end has come, even before a round removes it.
func TestEnd(t *testing.T) {
	t.Parallel()
	s, p := openLocal(t, func(s *Spec) {
		s.Lifecycle = Lifecycle{Idle: time.Hour, Session: 2 * time.Hour, Keep: 24 * time.Hour}
	})
	get := func() *Info {
		i, err := s.Get(t.Context(), "one")
		require.NoError(t, err)
		return i
	}
	soon := func(want, got time.Time) {
		t.Helper()
		require.WithinDuration(t, want, got, time.Minute)
	}
	require.Zero(t, get().Ends)
	soon(time.Now().Add(time.Hour), get().Pauses)
	end := time.Now().Add(3 * time.Hour)
	require.NoError(t, s.SetEnd(t.Context(), "one", end))
	require.True(t, end.Equal(get().Ends))
	require.NoError(t, s.Pause(t.Context(), "one"))
	require.Zero(t, get().Pauses)
	require.True(t, end.Equal(get().Ends), "before Keep")
	require.NoError(t, s.SetEnd(t.Context(), "one", time.Time{}))
	soon(time.Now().Add(24*time.Hour), get().Ends)

	later := start(t, s, StartOptions{ID: "one", Owner: "me", Ends: end})
	require.True(t, end.Equal(later.Ends), "Start resumes the box, and changes its end")
	again := start(t, s, StartOptions{ID: "one", Owner: "me"})
	require.True(t, end.Equal(again.Ends))

	boxes := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.boxes)
	}
	require.NoError(t, s.SetEnd(t.Context(), "one", time.Now().Add(time.Second)))
	eventually(t, "its timer has removed it", func() bool { return boxes() == 0 })
	require.ErrorIs(t, s.Pause(t.Context(), "one"), ErrNotFound)
	s.ends.close() // as if another process had set what follows
	start(t, s, StartOptions{ID: "one", Owner: "you", Ends: time.Now().Add(time.Second)})
	eventually(t, "the end has come", func() bool { return status(t, s, "one") == "" })
	require.Equal(t, 1, boxes())
	require.ErrorIs(t, s.Pause(t.Context(), "one"), ErrNotFound)
	require.Zero(t, boxes(), "the call has removed it")
	start(t, s, StartOptions{ID: "one", Owner: "you", Ends: time.Now().Add(time.Second)})
	eventually(t, "the end has come", func() bool { return status(t, s, "one") == "" })
	require.NoError(t, s.round(t.Context()))
	require.Zero(t, boxes(), "the round has removed it")

	for _, wrong := range []time.Time{time.Now(), time.Unix(1, 0), latestEnd.Add(1)} {
		require.ErrorIs(t, s.SetEnd(t.Context(), "one", wrong), ErrInvalid)
		_, err := s.Start(t.Context(), StartOptions{ID: "two", Ends: wrong})
		require.ErrorIs(t, err, ErrInvalid)
	}
	require.ErrorIs(t, s.SetEnd(t.Context(), "none", end), ErrNotFound)
}

// TestPauseAtEnd: a box is paused at its end, by the process that has set it, and else by a round.
// Its use resumes it, and gives it a new end.
func TestPauseAtEnd(t *testing.T) {
	t.Parallel()
	s, _ := openLocal(t, nil)
	o := StartOptions{ID: "two", Ends: time.Now().Add(time.Hour), PauseAtEnd: true,
		WakeFor: 2 * time.Hour}
	require.True(t, start(t, s, o).PauseAtEnd)
	info := func() *Info {
		i, err := s.Get(t.Context(), "two")
		require.NoError(t, err)
		return i
	}
	comes := func() {
		t.Helper()
		require.NoError(t, s.SetEnd(t.Context(), "two", time.Now().Add(time.Second)))
	}
	for _, by := range []string{"timer", "round"} {
		comes()
		eventually(t, "the "+by+" pauses it", func() bool {
			if by == "round" {
				require.NoError(t, s.round(t.Context()))
			}
			return info().Status == Paused && info().Ends.IsZero()
		})
		require.NoError(t, s.round(t.Context()))
		require.Equal(t, Paused, info().Status)
		_, err := s.Open(t.Context(), "two")
		require.NoError(t, err)
		require.Equal(t, Running, info().Status)
		require.WithinDuration(t, time.Now().Add(2*time.Hour), info().Ends, time.Minute)
		require.True(t, info().PauseAtEnd)
		require.Equal(t, 2*time.Hour, info().WakeFor)
		s.ends.close() // from now on, as if another process had set the end
	}
	// The end of a box that is paused already only goes.
	comes()
	require.NoError(t, s.Pause(t.Context(), "two"))
	eventually(t, "the end is gone", func() bool {
		require.NoError(t, s.round(t.Context()))
		return info().Ends.IsZero()
	})
	require.Equal(t, Paused, info().Status)
	require.NoError(t, s.Resume(t.Context(), "two"))
	require.Zero(t, info().Ends, "Resume is no use")
	for _, wrong := range []time.Duration{-1, 200 * 365 * 24 * time.Hour} {
		_, err := s.Start(t.Context(), StartOptions{WakeFor: wrong})
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "StartOptions.WakeFor")
	}
}

// TestNarrowed checks what is left of rules.
func TestNarrowed(t *testing.T) {
	for _, c := range []struct{ rules, hosts, want string }{
		{"a.com", "a.com", "a.com"}, {"a.com", "b.com", ""}, {"a.com", "*.com", "a.com"},
		{"*", "a.com", "a.com"}, {"*.com", "*", "*.com"}, {"*.b.com", "a.b.com", "a.b.com"},
		{"*.b.com", "*.com", "*.b.com"}, {"*.com", "*.b.com", "*.b.com"}, {"*.b.com", "b.com", ""},
		{"*.b.com", "xb.com", ""}, {"a.b.com", "*.b.com", "a.b.com"}, {"*", "1.1.1.1", "1.1.1.1"},
		{"GET https://*.b.com:8443/x/*", "a.b.com 2001:db8::1", "GET https://a.b.com:8443/x/*"},
		{"tls://*", "2001:db8::1", "tls://[2001:db8::1]"},
		{"tls://* *", "a.com b.com", "tls://a.com tls://b.com a.com b.com"},
	} {
		rules := strings.Split(c.rules, " ")
		if strings.HasPrefix(c.rules, "GET") {
			rules = []string{c.rules}
		}
		hosts, err := checkHosts("hosts", strings.Fields(c.hosts))
		require.NoError(t, err)
		require.Equal(t, c.want, strings.Join(rulesOf(&place.Record{Note: &place.Note{
			Egress: rules, Hosts: hosts}}), " "), "%s and %s", c.rules, c.hosts)
	}
	for _, wrong := range []string{"", "https://a.com", "a.com:80", "GET a.com", "a.com/x",
		"10.0.0.0/8", "a b"} {
		_, err := checkHosts("hosts", []string{wrong})
		require.ErrorIs(t, err, ErrInvalid, wrong)
	}
	_, err := checkHosts("hosts", make([]string, maxRules+1))
	require.ErrorIs(t, err, ErrInvalid)
}

// TestMetadata keeps texts with a box, and finds the box by them.
func TestMetadata(t *testing.T) {
	t.Parallel()
	s, _ := openLocal(t, nil)
	m := map[string]string{"team": "a, b=é", "empty": ""}
	two := start(t, s, StartOptions{ID: "two", Metadata: m})
	require.Equal(t, m, two.Metadata)
	m["team"] = "changed"
	for want, query := range map[string]map[string]string{
		"two": {"team": "a, b=é", "empty": ""}, "two, one": nil,
		"": {"team": "a, b=é", "none": ""},
	} {
		page, err := s.Search(t.Context(), Query{Metadata: query})
		require.NoError(t, err)
		var ids []string
		for _, i := range page.Items {
			ids = append(ids, i.ID)
		}
		require.Equal(t, want, strings.Join(ids, ", "))
	}
	for _, wrong := range []map[string]string{{"": "x"}, {"a=b": "x"}, {"a": "\n"}, {"a": "\xff"},
		{"a": strings.Repeat("x", maxMetadataText)}} {
		_, err := s.Start(t.Context(), StartOptions{Metadata: wrong})
		require.ErrorIs(t, err, ErrInvalid, "%q", wrong)
	}
}

// TestWakeByDeed: a deed resumes a paused box, if the spec says so.
func TestWakeByDeed(t *testing.T) {
	t.Parallel()
	s, _ := openLocal(t, func(s *Spec) { s.Lifecycle.Wake = true })
	c := deedsClient{serveAPI(t, readDocument(t), s, HandlerConfig{}), t}
	require.NoError(t, s.Pause(t.Context(), "one"))
	require.Equal(t, "awake\n", c.execute("echo awake"))
	require.Equal(t, Running, status(t, s, "one"))
}
