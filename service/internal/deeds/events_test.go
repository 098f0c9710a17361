package deeds

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A broken client receives nothing.
type broken struct{ http.ResponseWriter }

var errBroken = errors.New("the client is gone")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// TestClientGone: a stream whose client does not receive it ends its request.
func TestClientGone(t *testing.T) {
	t.Parallel()
	c := &call{deeds: &deeds{Config: Config{Heartbeat: time.Millisecond}},
		w: broken{httptest.NewRecorder()}, r: httptest.NewRequest("POST", "/", nil)}
	err := c.events(func(ctx context.Context, s *events) (any, error) {
		<-ctx.Done() // a heartbeat has failed
		_, err := s.Write([]byte("more"))
		require.ErrorIs(t, err, errBroken)
		return nil, ctx.Err()
	})
	require.NoError(t, err)
}

func TestWholeRunes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "a": 1, "ä": 2, "a\xc3": 1, "\xc3": 0,
		"\xe4\xbd": 0, "a\xf0\x9f\x98": 1, "\xff": 1, "a\x80\x80\x80\x80": 5} {
		require.Equal(t, want, wholeRunes([]byte(text)), "%q", text)
	}
}
