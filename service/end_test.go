package service

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

	require.NoError(t, s.SetEnd(t.Context(), "one", time.Now().Add(time.Millisecond)))
	eventually(t, "the end has come", func() bool { return status(t, s, "one") == "" })
	require.ErrorIs(t, s.Pause(t.Context(), "one"), ErrNotFound)
	require.Empty(t, p.boxes, "the call has removed it")
	start(t, s, StartOptions{ID: "one", Owner: "you", Ends: time.Now().Add(time.Second)})
	eventually(t, "the end has come", func() bool { return status(t, s, "one") == "" })
	require.NoError(t, s.round(t.Context()))
	require.Empty(t, p.boxes, "the round has removed it")

	for _, wrong := range []time.Time{time.Now(), time.Unix(1, 0), latestEnd.Add(1)} {
		require.ErrorIs(t, s.SetEnd(t.Context(), "one", wrong), ErrInvalid)
		_, err := s.Start(t.Context(), StartOptions{ID: "two", Ends: wrong})
		require.ErrorIs(t, err, ErrInvalid)
	}
	require.ErrorIs(t, s.SetEnd(t.Context(), "none", end), ErrNotFound)
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
