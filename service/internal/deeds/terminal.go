package deeds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

// personal prepares a session for a person. Lines end with "\r\n", as terminals need. ^C is echoed.
// Pagers work. The person's shell runs in a subshell, so that exit and exec do not end the
// session's own shell.
const (
	personal = "stty onlcr echoctl; unset PAGER GIT_PAGER MANPAGER"
	shell    = "(if command -v bash >/dev/null; then exec bash; else exec sh; fi\n)"
)

// terminalProtocol is the protocol of the WebSocket, if the client names any.
const terminalProtocol = "terminal"

type terminalQuery struct {
	Rows int64 `query:"rows"`
	Cols int64 `query:"cols"`
}

// terminal attaches a WebSocket to a new session of the box. Binary messages hold keys and output.
// A text message holds a new size of the terminal. The session ends with the connection.
func terminal(c *call, q *terminalQuery, _ *api.None) (any, error) {
	if err := checkSize(q.Rows, q.Cols, 0); err != nil {
		return nil, err
	}
	if !strings.EqualFold(c.r.Header.Get("Upgrade"), "websocket") {
		return nil, api.Errorf(http.StatusUpgradeRequired, "invalid",
			"this is a WebSocket: send Upgrade: websocket")
	}
	if err := c.checkOrigin(); err != nil {
		return nil, err
	}
	if len(c.Sessions()) >= maxSessions {
		return nil, errTooManySessions
	}
	session, err := c.Open(c.r.Context(), sandbox.Size(int(q.Rows), int(q.Cols)),
		sandbox.Env("TERM=xterm-256color"))
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if _, err := session.Execute(c.r.Context(), personal); err != nil {
		return nil, err
	}
	conn, err := websocket.Accept(c.w, c.r, &websocket.AcceptOptions{
		Subprotocols: []string{terminalProtocol}, InsecureSkipVerify: true}) // see checkOrigin
	if err != nil {
		return nil, nil // Accept has answered
	}
	defer conn.CloseNow()
	serveTerminal(c.r.Context(), conn, session, c.Heartbeat)
	return nil, nil
}

// checkOrigin refuses the pages of other sites: a browser sends them the client's cookies.
func (c *call) checkOrigin() error {
	origin := c.r.Header.Get("Origin")
	if origin == "" {
		return nil // no browser
	}
	u, err := url.Parse(origin)
	if err == nil && strings.EqualFold(u.Host, c.r.Host) {
		return nil
	}
	for _, pattern := range c.Origins {
		if err != nil {
			break
		}
		if ok, _ := path.Match(strings.ToLower(pattern), strings.ToLower(u.Host)); ok {
			return nil
		}
	}
	return api.Errorf(http.StatusForbidden, "permission", "pages of %q may not open terminals",
		origin)
}

// serveTerminal runs a shell for a person until the shell or the connection ends.
func serveTerminal(ctx context.Context, conn *websocket.Conn, session sandbox.Session,
	heartbeat time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	t := &terminalConn{conn: conn, ctx: ctx, shown: make(chan struct{})}
	others.Go(func() {
		defer cancel() // the client has closed the connection
		t.readKeys(session)
	})
	others.Go(func() {
		defer cancel() // the client does not answer
		t.ping(heartbeat)
	})
	// The end of the session ends the shell sooner than a kill would.
	reason := endOf(session.Execute(ctx, shell, sandbox.AtQuestion(sandbox.KeepWaiting),
		sandbox.Tee(t), sandbox.Leave()))
	// A reason has at most 123 bytes (RFC 6455, section 5.5). The end of ctx would cut the
	// connection, and so comes later.
	reason = strings.ToValidUTF8(reason[:min(len(reason), 120)], "")
	conn.Close(websocket.StatusNormalClosure, reason)
}

// endOf says why a person's shell has ended.
func endOf(res *sandbox.Result, err error) string {
	switch {
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrClosed):
		// ErrClosed means that the service has closed its connection to the box first.
		return "the box is gone"
	case err != nil:
		return err.Error()
	case res.ExitCode != 0:
		return fmt.Sprintf("the shell has ended with status %d", res.ExitCode)
	}
	return "the shell has ended"
}

// A terminalConn is the connection to a person's terminal.
type terminalConn struct {
	conn  *websocket.Conn
	ctx   context.Context // ends with the connection; Write has no other
	shown chan struct{}   // closed with the first output
	once  sync.Once
}

// Write sends output.
func (t *terminalConn) Write(b []byte) (int, error) {
	t.once.Do(func() { close(t.shown) })
	ctx, cancel := context.WithTimeout(t.ctx, eventLimit)
	defer cancel()
	return len(b), t.conn.Write(ctx, websocket.MessageBinary, b)
}

// ping returns when the client has not answered a ping in time.
func (t *terminalConn) ping(every time.Duration) {
	for {
		select {
		case <-time.After(every):
		case <-t.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(t.ctx, eventLimit)
		err := t.conn.Ping(ctx)
		cancel()
		if err != nil {
			return
		}
	}
}

// readKeys types the person's keys into the session until the connection ends.
func (t *terminalConn) readKeys(session sandbox.Session) {
	select {
	case <-t.shown: // the shell has started: its prompt is the first output
	case <-t.ctx.Done():
		return
	}
	t.conn.SetReadLimit(1 << 20) // a person may paste a long text
	for {
		kind, data, err := t.conn.Read(t.ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			err = session.Type(t.ctx, string(data))
		} else {
			var size struct{ Rows, Cols int64 }
			if err = json.Unmarshal(data, &size); err == nil {
				if err = checkSize(size.Rows, size.Cols, 1); err == nil {
					err = session.Resize(t.ctx, int(size.Rows), int(size.Cols))
				}
			}
		}
		if err != nil && !errors.Is(err, sandbox.ErrIdle) { // ErrIdle: the shell has just ended
			return
		}
	}
}
