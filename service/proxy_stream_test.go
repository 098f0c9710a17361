package service

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

func (f *front) testWebSocket(t *testing.T) {
	for _, info := range []*Info{f.a, f.caps} {
		u, err := url.Parse(info.URLs[0].URL + "ws")
		require.NoError(t, err)
		origin := http.Header{"Origin": {"http://" + u.Host}}
		c, _, err := websocket.Dial(t.Context(), u.String()+"?session_api_key="+info.SessionKey,
			&websocket.DialOptions{HTTPClient: f.client, HTTPHeader: origin})
		require.NoError(t, err)
		c.SetReadLimit(-1)
		for _, size := range []int{1, 100_000, 3} {
			sent := bytes.Repeat([]byte{'x'}, size)
			require.NoError(t, c.Write(t.Context(), websocket.MessageBinary, sent))
			_, got, err := c.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, sent, got)
		}
		require.NoError(t, c.Close(websocket.StatusNormalClosure, ""))
		_, res, err := websocket.Dial(t.Context(), u.String(),
			&websocket.DialOptions{HTTPClient: f.client, HTTPHeader: origin})
		require.Error(t, err)
		require.Equal(t, 401, res.StatusCode)
	}
}

// testEvents gets each event before it lets the box send the next.
func (f *front) testEvents(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", f.a.URLs[0].URL+"events", nil)
	require.NoError(t, err)
	header(f.a.SessionKey)(r)
	res, err := f.client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	for _, want := range []string{"data: 0\n\n", "data: 1\n\n", "data: 2\n\n"} {
		got := make([]byte, len(want))
		_, err := io.ReadFull(res.Body, got)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		f.do(t, "POST", f.a, "next", header(f.a.SessionKey))
	}
}

// testDuplex gets the answer to the first half of a request before it sends the second.
func (f *front) testDuplex(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	body, in := io.Pipe()
	defer context.AfterFunc(ctx, func() { in.Close() })()
	defer in.Close()
	r, err := http.NewRequestWithContext(ctx, "POST", f.a.URLs[0].URL+"echo", body)
	require.NoError(t, err)
	header(f.a.SessionKey)(r)
	res, err := f.client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	for _, half := range []string{"first", "second"} {
		_, err := io.WriteString(in, half)
		require.NoError(t, err)
		got := make([]byte, len(half))
		_, err = io.ReadFull(res.Body, got)
		require.NoError(t, err)
		require.Equal(t, half, string(got))
	}
	in.Close()
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Empty(t, rest)
}

// testBigAnswers checks answers that the box begins before it has read the requests.
func (f *front) testBigAnswers(t *testing.T) {
	requests, size := 20, "2097152"
	if testenv.All() {
		requests, size = 100, "5242880"
	}
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), "POST", f.a.URLs[0].URL+"big?n="+size,
				bytes.NewReader(make([]byte, 300_000)))
			if err != nil {
				t.Error(err)
				return
			}
			header(f.a.SessionKey)(r)
			res, err := f.client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if n, err := io.Copy(io.Discard, res.Body); err != nil || n != res.ContentLength {
				t.Errorf("%d bytes of %d: %v", n, res.ContentLength, err)
			}
		})
	}
	all.Wait()
}
