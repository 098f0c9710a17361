package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// A page does what page.js does for a terminal.
type page struct {
	*websocket.Conn
	t   *testing.T
	got string
}

// TestTerminal attaches to a box over a WebSocket, as page.js does. TestRun does the same with
// Chromium.
func TestTerminal(t *testing.T) {
	address, token, _ := strings.Cut(serve(t, "127.0.0.1:0"), "#token=")
	ask := func(method, path string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, address+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { res.Body.Close(); http.DefaultClient.CloseIdleConnections() })
		require.Equal(t, 200, res.StatusCode)
		return res
	}
	events := ask("GET", "events")
	_, err := io.ReadFull(events.Body, make([]byte, len("data: hello\n\n")))
	require.NoError(t, err)
	ask("POST", "sandboxes?sandbox_id=one")
	var told [len("data: one ")]byte
	_, err = io.ReadFull(events.Body, told[:])
	require.NoError(t, err)
	require.Equal(t, "data: one ", string(told[:]))

	attach := func(id, given string, header ...string) (*page, *http.Response, error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		t.Cleanup(cancel)
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		c, res, err := websocket.Dial(ctx, address+"sandboxes/"+id+
			"/terminal?rows=30&cols=90", &websocket.DialOptions{HTTPHeader: h,
			Subprotocols: []string{"terminal", tokenProtocol + given}})
		if err != nil {
			return nil, res, err
		}
		t.Cleanup(func() { c.CloseNow() })
		return &page{Conn: c, t: t}, res, nil
	}
	_, res, err := attach("one", token, "Origin", "http://elsewhere.example.com")
	require.Error(t, err)
	require.Equal(t, 403, res.StatusCode, "the page of another site")
	_, res, err = attach("one", "wrong")
	require.Error(t, err)
	require.Equal(t, 401, res.StatusCode)
	_, res, err = attach("none", token)
	require.Error(t, err)
	require.Equal(t, 404, res.StatusCode)

	first, _, err := attach("one", token)
	require.NoError(t, err)
	second, _, err := attach("one", token)
	require.NoError(t, err)
	first.types("stty size; x=1; tty\n")
	first.shows("30 90\r\n")
	require.NoError(t, first.Write(t.Context(), websocket.MessageText,
		[]byte(`{"rows":40,"cols":100}`)))
	first.types("stty size; echo first has x=$x.\n")
	first.shows("40 100\r\n")
	first.shows("first has x=1.\r\n")
	second.types("echo second has x=$x.\n")
	second.shows("second has x=.\r\n")
	first.types("exit 3\n")
	require.Equal(t, "the shell has ended with status 3", first.ends())
	ask("DELETE", "sandboxes/one")
	require.Equal(t, "the box is gone", second.ends())
}

// types types text. The program keeps text that comes before the prompt.
func (p *page) types(text string) {
	p.t.Helper()
	require.NoError(p.t, p.Write(p.t.Context(), websocket.MessageBinary, []byte(text)))
}

// shows waits until the output contains text.
func (p *page) shows(text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	for !strings.Contains(p.got, text) {
		_, data, err := p.Read(ctx)
		require.NoError(p.t, err, "%q is not in %q", text, p.got)
		p.got += string(data)
	}
}

// ends waits for the end of the connection, and returns its reason.
func (p *page) ends() string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	for {
		_, _, err := p.Read(ctx)
		var end websocket.CloseError
		if errors.As(err, &end) {
			return end.Reason
		}
		require.NoError(p.t, err)
	}
}
