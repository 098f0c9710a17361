package service

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A screen is what a page does for a terminal.
type screen struct {
	*websocket.Conn
	c   deedsClient
	got string
}

func (c deedsClient) attach(header ...string) (*screen, *http.Response) {
	c.Helper()
	h := http.Header{"User": {"me"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	conn, res, err := websocket.Dial(c.Context(), c.url+"/sandboxes/one/terminal?rows=30&cols=90",
		&websocket.DialOptions{HTTPHeader: h, Subprotocols: []string{"terminal", "token.x"}})
	if err != nil {
		return nil, res
	}
	c.Cleanup(func() { conn.CloseNow() })
	return &screen{Conn: conn, c: c}, res
}

// testTerminal works at terminals, as a person does.
func (c deedsClient) testTerminal() {
	c.fails("GET terminal", "", 426, "invalid: this is a WebSocket")
	c.fails("GET terminal?rows=2000", "", 422, "invalid: rows, cols: 2000")
	_, res := c.attach("Origin", "http://elsewhere.org")
	require.Equal(c, 403, res.StatusCode)
	require.Equal(c, "application/json", res.Header.Get("Content-Type"))
	c.shown["GET /sandboxes/{id}/terminal 403"] = true
	for _, origin := range []string{c.url, "https://page.example.com"} {
		s, res := c.attach("Origin", origin)
		require.Equal(c, 101, res.StatusCode)
		require.NoError(c, s.CloseNow())
	}
	first, res := c.attach()
	require.Equal(c, "terminal", res.Header.Get("Sec-WebSocket-Protocol"))
	c.shown["GET /sandboxes/{id}/terminal 101"] = true
	second, _ := c.attach()
	first.types("stty size; x=1; tty\n")
	first.shows("30 90\r\n")
	require.NoError(c, first.Write(c.Context(), websocket.MessageText,
		[]byte(`{"rows":40,"cols":100}`)))
	first.types("stty size; echo first has x=$x.\n")
	first.shows("40 100\r\n")
	first.shows("first has x=1.\r\n")
	second.types("echo second has x=$x.\n")
	second.shows("second has x=.\r\n")
	first.types("exit 3\n")
	require.Equal(c, "the shell has ended with status 3", first.ends())
	require.NoError(c, second.Close(websocket.StatusNormalClosure, ""))
	eventually(c, "their sessions are closed", func() bool {
		var list struct{ Items []struct{ ID string } }
		c.do("GET sessions", "", 200, &list)
		return len(list.Items) == 1
	})
}

func (s *screen) types(text string) {
	s.c.Helper()
	require.NoError(s.c, s.Write(s.c.Context(), websocket.MessageBinary, []byte(text)))
}

// shows waits until the output contains text.
func (s *screen) shows(text string) {
	s.c.Helper()
	ctx, cancel := context.WithTimeout(s.c.Context(), testenv.Limit)
	defer cancel()
	for !strings.Contains(s.got, text) {
		_, data, err := s.Read(ctx)
		require.NoError(s.c, err, "%q is not in %q", text, s.got)
		s.got += string(data)
	}
}

// ends waits for the end of the connection, and returns its reason.
func (s *screen) ends() string {
	s.c.Helper()
	ctx, cancel := context.WithTimeout(s.c.Context(), testenv.Limit)
	defer cancel()
	for {
		_, _, err := s.Read(ctx)
		var end websocket.CloseError
		if errors.As(err, &end) {
			return end.Reason
		}
		require.NoError(s.c, err)
	}
}
