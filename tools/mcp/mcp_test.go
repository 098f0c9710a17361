package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for what has to happen.
const limit = 3 * time.Minute

// A place makes the boxes of a server's sessions, and counts those that were opened and closed.
type place struct {
	t              *testing.T
	opened, closed atomic.Int32
}

// open is a Config.Open.
func (p *place) open(ctx context.Context) (*tools.Set, error) {
	box, err := localbox.New(ctx, localbox.Config{Dir: p.t.TempDir()})
	if err != nil {
		return nil, err
	}
	p.opened.Add(1)
	return tools.New(tools.Box(box, tools.Config{MaxSilence: -1, MaxWait: 10 * time.Minute}),
		tools.Closing(func() error {
			defer p.closed.Add(1)
			return box.Close()
		}), tools.Func("picture", "Shows a picture.", func(context.Context,
			struct{}) (*tools.Reply, error) {
			return &tools.Reply{Text: "look", Images: []tools.Image{
				{MIME: "image/png", Data: []byte("\x89PNG")}}}, nil
		}))
}

func serve(t *testing.T, c Config) (*Server, *place) {
	t.Helper()
	p := &place{t: t}
	if c.Open == nil {
		c.Open = p.open
	}
	s, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.Equal(t, p.opened.Load(), p.closed.Load(), "each session's box is closed")
	})
	return s, p
}

// connect begins a session of the SDK's client. It is closed at the end of the test.
func connect(t *testing.T, transport sdk.Transport, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
		transport, nil)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// each runs test with a client in this process and one over HTTP.
func each(t *testing.T, c Config, test func(t *testing.T, p *place,
	connect func(*sdk.ClientOptions) *sdk.ClientSession)) {
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		s, p := serve(t, c)
		test(t, p, func(o *sdk.ClientOptions) *sdk.ClientSession {
			transport, err := s.Connect(t.Context())
			require.NoError(t, err)
			return connect(t, transport, o)
		})
	})
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		s, p := serve(t, c)
		h := httptest.NewServer(s.Handler())
		t.Cleanup(h.Close)
		test(t, p, func(o *sdk.ClientOptions) *sdk.ClientSession {
			return connect(t, &sdk.StreamableClientTransport{Endpoint: h.URL,
				HTTPClient: h.Client(), DisableStandaloneSSE: o == nil}, o)
		})
	})
}

// call calls a tool and returns the result.
func call(t *testing.T, c *sdk.ClientSession, name string, args any) *sdk.CallToolResult {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	require.NoError(t, err)
	return r
}

type m = map[string]any

// text calls a tool, which must succeed, and returns the text of the result.
func text(t *testing.T, c *sdk.ClientSession, name string, args any) string {
	t.Helper()
	r := call(t, c, name, args)
	require.False(t, r.IsError, "%+v", r.Content[0])
	return r.Content[0].(*sdk.TextContent).Text
}

func TestSessions(t *testing.T) {
	t.Parallel()
	each(t, Config{Instructions: "Be kind."}, func(t *testing.T, p *place,
		connect func(*sdk.ClientOptions) *sdk.ClientSession) {
		one, two := connect(nil), connect(nil)
		require.Equal(t, "Be kind.", one.InitializeResult().Instructions)
		require.Zero(t, p.opened.Load(), "no client has asked for tools")
		list, err := one.ListTools(t.Context(), nil)
		require.NoError(t, err)
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			require.NotEmpty(t, tool.Description)
			schema, err := json.Marshal(tool.InputSchema)
			require.NoError(t, err)
			require.Contains(t, string(schema), `"type":"object"`)
			require.Equal(t, strings.Contains(" look output read list find search job_list ",
				" "+tool.Name+" "), tool.Annotations.ReadOnlyHint, tool.Name)
		}
		require.Equal(t, "run answer wait interrupt look output read write edit list find search "+
			"job_start job_logs job_wait job_answer job_kill job_list picture",
			strings.Join(names, " "))

		require.Equal(t, "[no output]\n", text(t, one, "run", m{"command": "X=one"}))
		require.Equal(t, "[no output]\n", text(t, two, "run", m{"command": "X=two"}))
		require.Equal(t, "one\n", text(t, one, "run", m{"command": "echo $X"}),
			"a box for each session")
		require.Equal(t, "two\n[exit status 3]\n", text(t, two, "run",
			m{"command": "echo $X; (exit 3)"}))
		require.EqualValues(t, 2, p.opened.Load())

		wrong := call(t, one, "run", m{"cmd": "x"})
		require.True(t, wrong.IsError)
		require.Contains(t, wrong.Content[0].(*sdk.TextContent).Text,
			"- there is no argument \"cmd\"\n- the argument \"command\" is missing\n")
		require.Contains(t, call(t, one, "execute", nil).Content[0].(*sdk.TextContent).Text,
			`there is no tool "execute": use one of run, `)
		picture := call(t, one, "picture", nil)
		require.Equal(t, "\x89PNG", string(picture.Content[1].(*sdk.ImageContent).Data))

		require.NoError(t, one.Close())
		require.Eventually(t, func() bool { return p.closed.Load() == 1 }, limit, time.Millisecond)
		require.Equal(t, "two\n", text(t, two, "run", m{"command": "echo $X"}))
	})
}

func TestProgress(t *testing.T) {
	t.Parallel()
	each(t, Config{Progress: 10 * time.Millisecond},
		func(t *testing.T, _ *place, connect func(*sdk.ClientOptions) *sdk.ClientSession) {
			told := make(chan *sdk.ProgressNotificationParams, 10_000)
			c := connect(&sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
				r *sdk.ProgressNotificationClientRequest) {
				told <- r.Params
			}})
			text(t, c, "run", m{"command": "mkfifo go"})
			params := &sdk.CallToolParams{Name: "run", Arguments: m{
				"command": "echo first; echo second >&2; cat go"}}
			params.SetProgressToken("token")
			ended := make(chan error, 1)
			go func() {
				_, err := c.CallTool(t.Context(), params)
				ended <- err
			}()
			last := 0.0
			for n := 0; n < 3; {
				select {
				case p := <-told:
					require.Equal(t, "token", p.ProgressToken)
					require.Greater(t, p.Progress, last)
					last = p.Progress
					if p.Message == "second" {
						n++
					}
				case err := <-ended:
					require.Fail(t, "the call has ended", err)
				case <-time.After(limit):
					require.Fail(t, "no progress")
				}
			}
			text(t, c, "job_start", m{"command": "echo x >go"}) // while the call runs
			require.NoError(t, <-ended)
		})
}

// TestCancel shows that a request that the client cancels interrupts its command, and that the
// session goes on.
func TestCancel(t *testing.T) {
	t.Parallel()
	each(t, Config{}, func(t *testing.T, _ *place, connect func(
		*sdk.ClientOptions) *sdk.ClientSession) {
		c := connect(nil)
		text(t, c, "run", m{"command": "X=kept"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := sleep(ctx, t, c)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		// The SDK's client does not wait for the server's end of the call. Until the command is
		// interrupted, the server refuses the next one.
		for late := time.Now().Add(limit); ; {
			r := call(t, c, "run", m{"command": "echo $X"})
			if !r.IsError {
				break
			}
			said := r.Content[0].(*sdk.TextContent).Text
			require.Contains(t, said, "the last command is unfinished")
			require.True(t, time.Now().Before(late), "the command is not interrupted: %s",
				call(t, c, "run", m{"command": "echo"}).Content[0])
		}
		require.Equal(t, "kept\n", text(t, c, "run", m{"command": "echo $X"}))
	})
}

// sleep runs a command that goes on, and returns when the command has started. The channel gets the
// error of the call.
func sleep(ctx context.Context, t *testing.T, c *sdk.ClientSession) chan error {
	text(t, c, "run", m{"command": "mkfifo go"})
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "run",
			Arguments: m{"command": "echo >go; sleep 1000", "seconds": 1000}})
		ended <- err
	}()
	// job_start shows the output if the job ends at once. Otherwise job_wait does.
	said := text(t, c, "job_start", m{"command": "cat go; echo there"})
	require.Contains(t, said+text(t, c, "job_wait", m{"job": "job-1"}), "there")
	return ended
}

// TestLeave shows that a session that ends while a command runs leaves nothing behind, and does not
// wait for the command. The Close of the SDK's client waits for it, so the test does not use that.
func TestLeave(t *testing.T) {
	t.Parallel()
	t.Run("end of input", func(t *testing.T) {
		t.Parallel()
		s, p := serve(t, Config{})
		in, ask := io.Pipe()
		answer, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.Serve(t.Context(), &Lines{Reader: in, Writer: out}) }()
		c := connect(t, &sdk.IOTransport{Reader: answer, Writer: ask}, nil)
		ended := sleep(t.Context(), t, c)
		ask.Close()
		require.NoError(t, <-served)
		require.EqualValues(t, 1, p.closed.Load())
		out.Close()
		require.Error(t, <-ended)
	})
	t.Run("DELETE", func(t *testing.T) {
		t.Parallel()
		s, p := serve(t, Config{})
		h := httptest.NewServer(s.Handler())
		t.Cleanup(h.Close)
		c := connect(t, &sdk.StreamableClientTransport{Endpoint: h.URL, HTTPClient: h.Client()},
			nil)
		ended := sleep(t.Context(), t, c)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.URL, nil)
		require.NoError(t, err)
		r.Header.Set("Mcp-Session-Id", c.ID())
		res, err := h.Client().Do(r)
		require.NoError(t, err)
		res.Body.Close()
		require.Error(t, <-ended)
		require.Eventually(t, func() bool { return p.closed.Load() == 1 }, limit, time.Millisecond)
	})
	t.Run("the server's Close, and the end of ctx", func(t *testing.T) {
		t.Parallel()
		s, p := serve(t, Config{})
		transport, err := s.Connect(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		ours, theirs := sdk.NewInMemoryTransports()
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, ours) }()
		one, two := sleep(t.Context(), t, connect(t, transport, nil)),
			sleep(t.Context(), t, connect(t, theirs, nil))
		cancel(errors.New("enough"))
		require.EqualError(t, <-served, "mcp: serve: context canceled: enough")
		require.Error(t, <-two)
		require.EqualValues(t, 1, p.closed.Load())
		require.NoError(t, s.Close())
		require.Error(t, <-one)
		require.EqualValues(t, 2, p.closed.Load())
		_, err = s.Connect(t.Context())
		require.ErrorIs(t, err, sandbox.ErrClosed)
	})
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	var tried atomic.Int32
	p := &place{t: t}
	each(t, Config{Open: func(ctx context.Context) (*tools.Set, error) {
		if tried.Add(1)%2 == 1 {
			return nil, errors.New("no engine")
		}
		return p.open(ctx)
	}}, func(t *testing.T, _ *place, connect func(*sdk.ClientOptions) *sdk.ClientSession) {
		c := connect(nil)
		_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "picture"})
		if err != nil { // the two subtests share tried, so this may be an even try
			require.ErrorContains(t, err, "make the session's box: no engine")
		}
		require.Eventually(t, func() bool {
			_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "picture"})
			return err == nil
		}, limit, time.Millisecond)
	})
	_, err := New(Config{})
	require.EqualError(t, err, "mcp: Config.Place: it is nil: give a place that makes the boxes, "+
		"such as sshbox.Place{}, or give Open")
	_, err = New(Config{Open: p.open, Progress: -1})
	require.EqualError(t, err, "mcp: Config.Progress: -1ns is negative: 0 stands for a second")
}
