package mcp

import (
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/sandbox"
)

// maxBodyTime is how long the body of a request may take to arrive.
const maxBodyTime = time.Minute

// Handler returns a handler that serves sessions over streamable HTTP. It does not authenticate
// clients: wrap it in a handler that does. A request's body may have 4 MiB, and may take a minute
// to arrive.
//
// Give the http.Server a ReadHeaderTimeout, an IdleTimeout and MaxHeaderBytes, but no WriteTimeout.
// A WriteTimeout ends calls that take longer, and the streams on which clients listen.
func (s *Server) Handler() http.Handler {
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		return s.server
	}, &sdk.StreamableHTTPOptions{
		Logger: s.config.Logger, SessionTimeout: max(s.config.SessionTimeout, 0),
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			// The SDK waits for the session's calls. stop ends them.
			s.stopSession(r.Header.Get("Mcp-Session-Id"))
		}
		if r.Body != http.NoBody {
			// net/http removes the deadline at the end of the body. If there were no body, the
			// deadline would end the whole request, such as the stream on which a client listens.
			// The error means that the ResponseWriter, as in a test, has no deadline.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.bodyTime))
		}
		h.ServeHTTP(w, r)
	})
}

// stopSession stops the session with an id.
func (s *Server) stopSession(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ss, session := range s.sessions {
		if id != "" && ss.ID() == id {
			session.stop(sandbox.ErrClosed)
		}
	}
}
