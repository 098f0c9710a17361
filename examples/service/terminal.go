package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/coder/websocket"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service"
)

// A session is set up for a person: lines end with "\r\n", as xterm.js needs; ^C is shown; pagers
// work. The person's shell runs in a subshell, so that exit and exec do not end the session's own.
const (
	personal = "stty onlcr echoctl; unset PAGER GIT_PAGER MANPAGER"
	shell    = "(if command -v bash >/dev/null; then exec bash; else exec sh; fi\n)"
)

// attached attaches a WebSocket to a new session of a box. Binary messages are what is typed and
// what is shown; a text message of the page says how large the terminal is. The session ends with
// the connection.
func (a *app) attached(w http.ResponseWriter, r *http.Request) {
	a.terminals.Add(1)
	defer a.terminals.Done()
	id := r.PathValue("id")
	defer a.service.Used(id)()
	// it refuses the pages of other hosts
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{terminalProtocol}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx, cancel := context.WithCancel(r.Context())
	var typing sync.WaitGroup
	defer typing.Wait()
	defer cancel()
	t := &terminal{conn: conn, ctx: ctx, shown: make(chan struct{})}
	reason := "the shell has ended"
	status, err := a.attach(ctx, id, size{atoi(r.FormValue("rows")), atoi(r.FormValue("cols"))}, t,
		func(session sandbox.Session) {
			typing.Go(func() {
				defer cancel() // the page is gone
				t.keys(session)
			})
		})
	switch {
	case errors.Is(err, service.ErrNotFound), errors.Is(err, sandbox.ErrLost),
		errors.Is(err, sandbox.ErrClosed):
		// closed: the service has let go of it first
		reason = "the box is gone"
	case err != nil:
		reason = err.Error()
	case status != 0:
		reason = fmt.Sprintf("the shell has ended with status %d", status)
	}
	// the protocol allows 123 bytes
	conn.Close(websocket.StatusNormalClosure, reason[:min(len(reason), 120)])
}

type size struct{ Rows, Cols int }

// allowed returns the size within the bounds of what a screen may have; what the page has not said
// is the usual.
func (s size) allowed() (rows, cols int) {
	if s.Rows <= 0 || s.Cols <= 0 {
		return sandbox.DefaultRows, sandbox.DefaultCols
	}
	return min(s.Rows, 500), min(s.Cols, 500)
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// attach runs a shell in a session of the box until it ends, or ctx. begun is called with the
// session.
func (a *app) attach(ctx context.Context, id string, s size, t *terminal,
	begun func(sandbox.Session)) (status int, err error) {
	box, err := a.service.Open(ctx, id)
	if err != nil {
		return 0, err
	}
	session, err := box.Open(ctx, sandbox.Size(s.allowed()), sandbox.Env("TERM=xterm-256color"))
	if err != nil {
		return 0, err
	}
	defer session.Close()
	if _, err := session.Execute(ctx, personal); err != nil {
		return 0, err
	}
	begun(session)
	res, err := session.Execute(ctx, shell, sandbox.AtQuestion(sandbox.KeepWaiting), sandbox.Tee(t))
	if err != nil {
		return 0, err
	}
	return res.ExitCode, nil
}

// A terminal is the page's end.
type terminal struct {
	conn  *websocket.Conn
	ctx   context.Context // of the connection
	shown chan struct{}   // closed with the first output
	once  sync.Once
}

// Write shows output.
func (t *terminal) Write(b []byte) (int, error) {
	t.once.Do(func() { close(t.shown) })
	return len(b), t.conn.Write(t.ctx, websocket.MessageBinary, b)
}

// keys passes on what is typed, until the connection ends.
func (t *terminal) keys(session sandbox.Session) {
	select {
	case <-t.shown: // before its prompt the shell has not begun, and there is nobody to type to
	case <-t.ctx.Done():
		return
	}
	t.conn.SetReadLimit(1 << 20) // for what is pasted
	for {
		kind, data, err := t.conn.Read(t.ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			err = session.Type(t.ctx, string(data))
		} else {
			var s size
			if err = json.Unmarshal(data, &s); err == nil {
				rows, cols := s.allowed()
				err = session.Resize(t.ctx, rows, cols)
			}
		}
		if err != nil && !errors.Is(err, sandbox.ErrIdle) { // ErrIdle: the shell has just ended
			return
		}
	}
}
