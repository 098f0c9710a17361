package mcp

import (
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/sandbox"
)

// maxBodyTime is how long the body of a request may take to arrive.
const maxBodyTime = time.Minute

// Handler serves sessions by streamable HTTP. It asks nobody who they are: that is for a handler
// around it. A request's body may have 4 MiB and take a minute to arrive. Give the http.Server a
// ReadHeaderTimeout, an IdleTimeout and MaxHeaderBytes, but no WriteTimeout: it would end a call
// that takes longer, and the stream that a client listens to.
func (s *Server) Handler() http.Handler {
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		return s.server
	}, &sdk.StreamableHTTPOptions{
		Logger: s.config.Logger, SessionTimeout: max(s.config.SessionTimeout, 0),
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete { // the SDK waits for the session's calls
			s.endCalls(r.Header.Get("Mcp-Session-Id"))
		}
		if r.Body != http.NoBody {
			// net/http lifts the deadline at the end of the body; without a body, the deadline
			// would end the request itself, such as the stream that a client listens to. A test's
			// ResponseWriter has no deadline.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.bodyTime))
		}
		h.ServeHTTP(w, r)
	})
}

// endCalls ends the calls of the session of that id.
func (s *Server) endCalls(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ss, session := range s.sessions {
		if id != "" && ss.ID() == id {
			session.stop(sandbox.ErrClosed)
		}
	}
}
