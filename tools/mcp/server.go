package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
)

// A Config has the settings of a Server. Open is required.
type Config struct {
	// Open makes the tools of a session, and a box for them; ctx ends with the request that needs
	// them. The set is closed at the session's end: let tools.Closing close the box with it. Open
	// may be called from several goroutines. If it returns an error or panics, or returns no set,
	// the client is told of it, and its next request calls Open again.
	Open func(ctx context.Context) (*tools.Set, error)
	// Name and Version are what the server says it is. Default: "sandshell" and "0".
	Name, Version string
	// Instructions are for the model: what the box is for, and what is in it. Default: none.
	Instructions string
	// Progress is how often a client that wants to know is told of a call's progress. Default:
	// every second.
	Progress time.Duration
	// SessionTimeout ends a session over HTTP from which nothing has come for so long. Default:
	// half an hour. Negative: never.
	SessionTimeout time.Duration
	// MaxSessions is how many sessions there can be at a time for another to begin over HTTP. A
	// client beyond it is told so when it initializes. Default: 100. Negative: any number.
	MaxSessions int
	// Logger gets what happens. Default: none.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Open == nil {
		return c, errors.New("Config.Open is missing: it makes the tools of a session")
	}
	if c.Name == "" {
		c.Name = "sandshell"
	}
	if c.Version == "" {
		c.Version = "0"
	}
	if c.Progress <= 0 {
		c.Progress = time.Second
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 30 * time.Minute
	}
	if c.MaxSessions == 0 {
		c.MaxSessions = 100
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// A Server serves tools to clients, each with a set of its own. New makes one. Its methods may be
// called from several goroutines.
type Server struct {
	config Config
	server *sdk.Server

	grace    time.Duration // endGrace
	bodyTime time.Duration // maxBodyTime

	work sync.WaitGroup // a goroutine for each session

	mu       sync.Mutex
	closed   bool
	sessions map[*sdk.ServerSession]*session
}

// New makes a server.
func New(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	s := &Server{
		config: c, grace: endGrace, bodyTime: maxBodyTime,
		sessions: map[*sdk.ServerSession]*session{},
	}
	s.server = sdk.NewServer(&sdk.Implementation{Name: c.Name, Version: c.Version},
		&sdk.ServerOptions{
			Instructions: c.Instructions,
			Logger:       c.Logger,
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		})
	s.server.AddReceivingMiddleware(s.receive)
	return s, nil
}

// Stdio serves the client that has started this program, on standard input and output, until the
// client ends the session, or ctx ends. Nothing else may write to standard output meanwhile. (A
// read of standard input that is a terminal can stay behind, until the program's end.)
func (s *Server) Stdio(ctx context.Context) error {
	return s.Serve(ctx, &Lines{Reader: os.Stdin, Writer: os.Stdout})
}

// Serve serves a session until its client ends it, or ctx ends, whose error it returns then. When
// it returns, the session's set is closed. It does not wait for a write of t that goes on 10 s
// after the end of ctx. The SDK calls t in goroutines of its own, where a panic of t ends the
// process; Lines makes errors of its Reader's and Writer's panics.
func (s *Server) Serve(ctx context.Context, t sdk.Transport) error {
	session, err := s.connect(ctx, t)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { session.stop(ctxerr.Of(ctx)) })
	<-session.over
	err = session.reason
	if !stop() {
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		return fmt.Errorf("mcp: serve: %w", err)
	}
	return nil
}

// Connect begins a session in this program, and returns what a client connects to. The session ends
// with the client's.
func (s *Server) Connect(ctx context.Context) (sdk.Transport, error) {
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := s.connect(ctx, ours); err != nil {
		return nil, err
	}
	return theirs, nil
}

func (s *Server) connect(ctx context.Context, t sdk.Transport) (*session, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("mcp: connect: %w", sandbox.ErrClosed)
	}
	ss, err := s.server.Connect(ctx, t, nil)
	if err != nil {
		return nil, fmt.Errorf("mcp: connect: %w", err)
	}
	session, err := s.session(ss)
	if err != nil {
		return nil, errors.Join(err, ss.Close())
	}
	return session, nil
}

// Close ends all sessions, and returns when their sets are closed. Closing again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for ss := range s.server.Sessions() {
		s.mu.Lock()
		session := s.sessions[ss]
		s.mu.Unlock()
		if session == nil { // it has not initialized
			ss.Close()
			continue
		}
		session.stop(sandbox.ErrClosed)
	}
	s.work.Wait()
	return nil
}
