package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// waitingSpecs are Specs that take their time, unless the caller goes away.
type waitingSpecs struct {
	Specs
	wait time.Duration
}

var errWaited = errors.New("has waited to the end")

func (s waitingSpecs) Default(ctx context.Context) (*Spec, error) {
	select {
	case <-time.After(s.wait):
		return nil, errWaited
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestBodyLimit sends requests that take longer than their bodies may take to arrive, and bodies
// that do not arrive.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Second // in which a busy machine delivers a request
	s := open(t, "bodies", func(c *Config) { c.Specs = waitingSpecs{c.Specs, limit + time.Second} },
		small("small", nil))
	server := httptest.NewUnstartedServer(Handler(s, HandlerConfig{bodyLimit: limit}))
	server.Config.ReadTimeout = limit // is for the request, and not for its work
	server.Start()
	t.Cleanup(server.Close)
	for _, body := range []string{"", `{"env":{"A":"B"}}`} {
		t.Run(fmt.Sprintf("body=%q", body), func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			res, err := server.Client().Post(server.URL+"/sandboxes", "application/json",
				strings.NewReader(body))
			require.NoError(t, err)
			defer res.Body.Close()
			require.NoError(t, res.Write(w))
			require.Contains(t, w.Body.String(), errWaited.Error())
		})
	}
	t.Run("endless", func(t *testing.T) {
		t.Parallel()
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprint(conn,
			"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
		require.NoError(t, err)
		got, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer got.Body.Close()
		require.Equal(t, 422, got.StatusCode)
	})
}
