package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/tools"
	"github.com/stretchr/testify/require"
)

// TestPanics shows that a panic of Open or of a tool is the error of a call, and that the next call
// is answered.
func TestPanics(t *testing.T) {
	t.Parallel()
	var tried atomic.Int32
	config := Config{Open: func(context.Context) (*tools.Set, error) {
		switch tried.Add(1) {
		case 1:
			panic("no box")
		case 2:
			return nil, nil
		}
		return tools.New(
			tools.Func("boom", "", func(context.Context, struct{}) (string, error) {
				panic("oops")
			}),
			tools.Func("fine", "", func(context.Context, struct{}) (string, error) {
				return "fine", nil
			}),
			tools.Closing(func() error { panic("cannot close") }),
		)
	}}
	s, _ := serve(t, config)
	transport, err := s.Connect(t.Context())
	require.NoError(t, err)
	c := connect(t, transport, nil)
	_, err = c.ListTools(t.Context(), nil)
	require.ErrorContains(t, err, "make the session's box: Config.Open panicked: no box (in ")
	_, err = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "fine"})
	require.ErrorContains(t, err, "make the session's box: Config.Open returned neither tools "+
		"nor an error")
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "boom"})
	said := fmt.Sprint(err)
	if err == nil {
		require.True(t, r.IsError)
		said = r.Content[0].(*sdk.TextContent).Text
	}
	require.Contains(t, said, "panicked: oops")
	require.Equal(t, "fine", text(t, c, "fine", nil))
}

// TestLinesFaults shows that streams that panic or block end their session.
func TestLinesFaults(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, Config{})
	ping := `{"jsonrpc": "2.0", "id": 1, "method": "ping"}` + "\n"
	input := func() io.ReadCloser { return io.NopCloser(strings.NewReader(ping)) }
	for _, l := range []*Lines{{}, {Reader: input()}, {Writer: io.Discard}} {
		require.EqualError(t, s.Serve(t.Context(), l),
			"mcp: connect: Lines.Reader, Lines.Writer: one of them is nil: give both")
	}
	bad := &panics{}
	require.ErrorContains(t, s.Serve(t.Context(), &Lines{Reader: bad, Writer: io.Discard}),
		"Lines.Reader panicked: oops")
	in, ask := io.Pipe()
	go io.WriteString(ask, ping)
	s.Serve(t.Context(), &Lines{Reader: in, Writer: bad})
	require.EqualValues(t, 1, bad.written.Load())

	s.grace = time.Millisecond
	ctx, cancel := context.WithCancelCause(t.Context())
	blocks := make(blocking)
	defer close(blocks)
	in, ask = io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, &Lines{Reader: in, Writer: blocks}) }()
	io.WriteString(ask, ping)
	<-blocks // the answer is being written
	cancel(errors.New("enough"))
	require.EqualError(t, <-served, "mcp: serve: context canceled: enough")
}

// A panics is a stream whose methods panic.
type panics struct{ written atomic.Int32 }

func (p *panics) Read([]byte) (int, error) { panic("oops") }
func (p *panics) Close() error             { panic("oops") }
func (p *panics) Write([]byte) (int, error) {
	p.written.Add(1)
	panic("oops")
}

// A blocking is a writer whose Write sends to the channel, and returns when the channel is closed.
type blocking chan struct{}

func (b blocking) Write(p []byte) (int, error) {
	b <- struct{}{}
	<-b
	return len(p), nil
}

func TestMaxSessions(t *testing.T) {
	t.Parallel()
	s, p := serve(t, Config{MaxSessions: 2})
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	transport := func() sdk.Transport {
		return &sdk.StreamableClientTransport{Endpoint: h.URL, HTTPClient: h.Client(),
			DisableStandaloneSSE: true}
	}
	one, two := connect(t, transport(), nil), connect(t, transport(), nil)
	text(t, two, "run", m{"command": "true"})
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	for range 3 {
		_, err := client.Connect(t.Context(), transport(), nil)
		require.ErrorContains(t, err, "the server has 2 sessions, and takes no more at a time: "+
			"try again when one has ended")
	}
	ours, err := s.Connect(t.Context())
	require.NoError(t, err, "the limit is only for HTTP")
	require.NoError(t, connect(t, ours, nil).Close())

	require.NoError(t, two.Close())
	require.Eventually(t, func() bool {
		three, err := client.Connect(t.Context(), transport(), nil)
		if err != nil {
			return false
		}
		three.Close()
		return true
	}, limit, time.Millisecond)
	require.EqualValues(t, 1, p.closed.Load())
	require.NoError(t, one.Ping(t.Context(), nil))
}

// TestSessionTimeout shows that a silent client loses its session even if it listens to a stream.
// It tries longer timeouts until one is long enough for this machine to begin a session.
func TestSessionTimeout(t *testing.T) {
	t.Parallel()
	for timeout := 50 * time.Millisecond; ; timeout *= 2 {
		s, p := serve(t, Config{SessionTimeout: timeout})
		h := httptest.NewServer(s.Handler())
		t.Cleanup(h.Close)
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		c, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: h.URL,
			HTTPClient: h.Client()}, nil)
		if err == nil {
			defer c.Close()
			_, err = c.ListTools(t.Context(), nil)
		}
		require.Eventually(t, func() bool {
			return p.closed.Load() == p.opened.Load() && s.count() == 0
		}, limit, time.Millisecond)
		if err == nil {
			require.Error(t, c.Ping(t.Context(), nil))
			return
		}
		require.Less(t, timeout, limit, "%v", err)
	}
}

// TestSlowBody shows that the server gives up a body that comes slowly, and that a call may take
// longer than a body.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, Config{})
	bodyTime := 100 * time.Millisecond
	s.bodyTime = bodyTime
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	conn, err := net.Dial("tcp", h.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(limit))
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"application/json\r\nAccept: */*\r\nContent-Length: 1000\r\n\r\n{")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "failed to read body\n", string(body))
	_, err = conn.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, "the connection is closed")

	require.Eventually(t, func() bool { // a slow machine needs more time for a body
		s, _ := serve(t, Config{})
		s.bodyTime = bodyTime
		bodyTime *= 2
		h := httptest.NewServer(s.Handler())
		t.Cleanup(h.Close)
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		c, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: h.URL,
			HTTPClient: h.Client(), DisableStandaloneSSE: true}, nil)
		if err != nil {
			return false
		}
		defer c.Close()
		command := fmt.Sprintf("sleep %f; echo done", 3*s.bodyTime.Seconds())
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "run",
			Arguments: m{"command": command}})
		return err == nil && res.Content[0].(*sdk.TextContent).Text == "done\n"
	}, limit, time.Millisecond)
}

// TestListens shows that a request without a body has no deadline, so that a client can listen for
// longer than a body may take.
func TestListens(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, Config{})
	s.bodyTime = time.Nanosecond
	ended := make(chan bool)
	handler := s.Handler()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r) // answers at once: the session does not exist
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			ended <- true
		case <-time.After(100 * time.Millisecond):
			ended <- false
		}
	}))
	t.Cleanup(h.Close)
	res, err := http.Get(h.URL)
	require.NoError(t, err)
	require.False(t, <-ended, "the request was ended")
	require.NoError(t, res.Body.Close())
}

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}
