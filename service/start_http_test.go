package service

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// TestPauseAtEndHTTP starts a box that is paused at its end, and resumed by its use.
func TestPauseAtEndHTTP(t *testing.T) {
	t.Parallel()
	defer http.DefaultClient.CloseIdleConnections()
	s, _ := openLocal(t, nil)
	a := serveAPI(t, readDocument(t), s, HandlerConfig{})
	var plain, box boxJSON
	a.ask(t, "", "GET /sandboxes/one", "", 200, &plain)
	require.False(t, plain.PauseAtEnd)
	require.Zero(t, plain.WakeFor)
	a.ask(t, "", "POST /sandboxes?sandbox_id=two",
		`{"ends_in_seconds":3600,"pause_at_end":true,"wake_for_seconds":7200.5}`, 200, &box)
	require.True(t, box.PauseAtEnd)
	require.Equal(t, 7200.5, box.WakeFor)
	info, err := s.Get(t.Context(), "two")
	require.NoError(t, err)
	require.Equal(t, 7200500*time.Millisecond, info.WakeFor)

	a.ask(t, "", "PATCH /sandboxes/two", `{"ends_in_seconds":0.5}`, 200, &box)
	require.True(t, box.PauseAtEnd, "what a request leaves out stays as it is")
	eventually(t, "its end pauses it", func() bool {
		a.ask(t, "", "GET /sandboxes/two", "", 200, &box)
		return box.Status == Paused && box.Ends == nil
	})
	a.ask(t, "", "POST /sandboxes/two/execute", `{"command":"true"}`, 200, nil)
	a.ask(t, "", "GET /sandboxes/two", "", 200, &box)
	require.Equal(t, Running, box.Status)
	require.WithinDuration(t, time.Now().Add(2*time.Hour), *box.Ends, time.Minute)
}

// A picky place refuses Notes with PauseAtEnd, as pods do.
type picky struct{ *localPlace }

func (p picky) Note(ctx context.Context, handle string, n place.Note) error {
	if n.PauseAtEnd {
		return &InvalidError{Field: "StartOptions.PauseAtEnd", Reason: "nobody pauses here"}
	}
	return p.localPlace.Note(ctx, handle, n)
}

// TestStartHTTPWrong shows that the error of a wrong value names the key of the request.
func TestStartHTTPWrong(t *testing.T) {
	t.Parallel()
	defer http.DefaultClient.CloseIdleConnections()
	s := open(t, "wrong", func(c *Config) { c.Place = picky{&localPlace{}} }, small("small", nil))
	a := serveAPI(t, readDocument(t), s, HandlerConfig{})
	start(t, s, StartOptions{ID: "one"})
	const post, patch = "POST /sandboxes", "PATCH /sandboxes/one"
	for _, c := range []struct{ request, body, want string }{
		{post, `{"pause_at_end":true}`, "pause_at_end: nobody pauses here"},
		{post, `{"pause_at_end":"yes"}`, `body: line 1: pause_at_end: "yes" is not true or false`},
		{post, `{"wake_for_seconds":-1}`, "wake_for_seconds: -1: write seconds, at most " +
			"3153600000; 0 means that the spec decides"},
		{post, `{"wake_for_seconds":4e9}`, "wake_for_seconds: 4e+09: write seconds, at most " +
			"3153600000; 0 means that the spec decides"},
		{post, `{"wake_for_seconds":"1h"}`,
			`body: line 1: wake_for_seconds: "1h" is not a number`},
		{post, `{"ends_in_seconds":-1}`, "ends_in_seconds: -1: write seconds from now, at most " +
			"3153600000; 0 means that the box has no end"},
		{post, `{"hosts":"a.com"}`,
			`body: line 1: hosts: it is "a.com": it has to be a list, as [text]`},
		{post, `{"hosts":["a.com"]}`, `hosts: boxes of spec "small" have no way out: give the ` +
			"spec an Egress, which may be empty"},
		{patch, `{"hosts":["a.com"]}`, `hosts: boxes of spec "small" have no way out: give the ` +
			"spec an Egress"},
		{patch, `{"hosts":null}`, "body: it changes nothing: give ends_in_seconds or hosts"},
		{patch, `{"pause_at_end":true}`, "body: line 1: pause_at_end: there is no such key: " +
			"there are ends_in_seconds, hosts"},
	} {
		var failed struct{ Code, Detail string }
		a.ask(t, "", c.request, c.body, 422, &failed)
		require.Equal(t, "invalid: "+c.want, failed.Code+": "+failed.Detail, c.body)
	}
}
