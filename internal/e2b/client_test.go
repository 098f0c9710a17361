package e2b

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestHostileAnswers checks that an answer that never ends is an error, and that a text that is
// shown has no escapes.
func TestHostileAnswers(t *testing.T) {
	type answer struct {
		status       int
		first, again string
	}
	var answers atomic.Pointer[answer] // a handler may write on when its client has gone
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a := answers.Load()
		w.WriteHeader(a.status)
		io.WriteString(w, a.first)
		for a.again != "" {
			if _, err := io.WriteString(w, a.again); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	control := &Control{HTTP: client, Base: server.URL}
	data := &Client{HTTP: client, Base: server.URL, Codec: JSON}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()

	answers.Store(&answer{http.StatusOK, `[`, strings.Repeat(`{},`, 1000)})
	_, err := control.List(ctx, nil)
	require.ErrorContains(t, err, "8 MiB")
	err = data.Call(ctx, ProcessService+"List", &Empty{}, &ListResponse{})
	require.ErrorContains(t, err, "16 MiB")
	s, err := data.Stream(ctx, ProcessService+"Start", &StartRequest{})
	require.NoError(t, err)
	require.ErrorContains(t, s.Next(&ProcessResponse{}), "a proxy may have answered")
	s.Close()

	answers.Store(&answer{http.StatusBadRequest, "\x1b]0;title\a", strings.Repeat("x", 1000)})
	_, err = control.Get(ctx, "id")
	require.True(t, HasStatus(err, http.StatusBadRequest))
	require.NotContains(t, err.Error(), "\x1b")
	require.Less(t, len(err.Error()), 4000)

	answers.Store(&answer{http.StatusConflict, `{"code":"not_found","message":"gone"}`, ""})
	err = data.Call(ctx, ProcessService+"List", &Empty{}, &ListResponse{})
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, &Error{NotFound, "gone"}, e)
}
