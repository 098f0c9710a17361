package service

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkProxy makes requests through the proxy. The floor is the same request through Dial. Each
// request has a connection of its own.
func BenchmarkProxy(b *testing.B) {
	f := startFront(b)
	box, err := f.Open(b.Context(), f.a.ID)
	require.NoError(b, err)
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return box.Dial(ctx, network, "127.0.0.1:8000")
		}}}
	for _, c := range []struct {
		name   string
		client *http.Client
	}{{"Dial", direct}, {"Proxy", f.client}} {
		b.Run(c.name, func(b *testing.B) {
			measured(b, func() {
				r, err := http.NewRequestWithContext(b.Context(), "GET", f.a.URLs[0].URL+"request",
					nil)
				require.NoError(b, err)
				header(f.a.SessionKey)(r)
				res, err := c.client.Do(r)
				require.NoError(b, err)
				_, err = io.Copy(io.Discard, res.Body)
				require.NoError(b, err)
				res.Body.Close()
				require.Equal(b, 200, res.StatusCode)
			})
		})
	}
}
