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
	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
)

// A Config has the settings of a Server. One of Place and Open must be set.
type Config struct {
	// Place makes the box of a session, of Spec. Its tools are those of tools.Box, with the zero
	// value of tools.Config but for History and Egress. The session's end closes the box.
	Place sandbox.Place
	Spec  sandbox.Spec
	// History is tools.Config.History of each box that Place makes. Default: none, and the tools
	// checkpoint and restore are missing.
	History string
	// Egress is attached to each box that Place makes, and says what it may reach outside. The
	// caller closes it after the server. Spec.Network is then sandbox.NetworkNone, unless the gate
	// is advisory. Default: boxes have the network that Spec says.
	Egress *egress.Gate
	// Open makes the tools of a session and their box instead of Place. ctx ends with the request
	// that needs them. The server closes the set at the session's end, and tools.Closing can close
	// the box with it. Open may be called from several goroutines. If Open returns an error or no
	// set, or panics, the client gets an error, and its next request calls Open again.
	Open func(ctx context.Context) (*tools.Set, error)
	// Name and Version are the server's name and version for clients. Default: "sandshell" and "0".
	Name, Version string
	// Instructions tell the model what the box is for and what is in it. Default: none.
	Instructions string
	// Progress is the time between two reports of a call's progress, for a client that wants them.
	// Default: a second.
	Progress time.Duration
	// SessionTimeout is how long nothing may come from a session over HTTP before the server ends
	// the session. Default: half an hour. If SessionTimeout is negative, silence ends no session.
	SessionTimeout time.Duration
	// MaxSessions bounds the number of sessions at a time, on all transports together. When there
	// are as many, the initialization of a further session over HTTP is an error. Other transports
	// are not refused. Default: 100. If MaxSessions is negative, there is no limit.
	MaxSessions int
	// Logger gets the SDK's log, and the end of each session. Default: none.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Open == nil && c.Place == nil:
		return c, errors.New("Config.Place: it is nil: give a place that makes the boxes, " +
			"such as sshbox.Place{}, or give Open")
	case c.Open != nil && c.Place != nil:
		return c, errors.New("Config.Open: Place is set, too: leave out one of the two")
	case c.Open != nil && c.Egress != nil:
		return c, errors.New("Config.Egress: it is for the boxes of Place: with Open, attach the " +
			"gate there")
	case c.Open != nil && c.History != "":
		return c, errors.New("Config.History: it is for the boxes of Place: with Open, set " +
			"tools.Config.History there")
	case c.Progress < 0:
		return c, fmt.Errorf("Config.Progress: %v is negative: 0 stands for a second", c.Progress)
	}
	if c.Open == nil {
		if err := sandbox.CheckSpec(c.Place, c.Spec); err != nil {
			return c, fmt.Errorf("Config.Spec: %w", err)
		}
		c.Open = c.openPlace
	}
	if c.Name == "" {
		c.Name = "sandshell"
	}
	if c.Version == "" {
		c.Version = "0"
	}
	if c.Progress == 0 {
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

// openPlace makes the tools of a session in Place.
func (c Config) openPlace(ctx context.Context) (*tools.Set, error) {
	box, err := c.Place.New(ctx, c.Spec)
	if err != nil {
		return nil, err
	}
	if box == nil {
		return nil, errors.New("Config.Place: New returned neither a box nor an error")
	}
	if c.Egress == nil {
		set, err := tools.New(tools.Box(box, tools.Config{History: c.History}),
			tools.Closing(box.Close))
		if err != nil {
			return nil, errors.Join(err, box.Close())
		}
		return set, nil
	}
	exit, err := c.Egress.Attach(ctx, box)
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	// If the box is closed first, there is nothing to undo in it.
	end := func() error { return errors.Join(box.Close(), exit.Close()) }
	set, err := tools.New(tools.Box(box, tools.Config{Egress: exit, History: c.History}),
		tools.Closing(end))
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return set, nil
}

// A Server serves tools to clients. Each client gets a set of its own. New makes a Server. Its
// methods may be called from several goroutines.
type Server struct {
	config Config
	server *sdk.Server

	grace    time.Duration // endGrace, but for tests
	bodyTime time.Duration // maxBodyTime, but for tests

	work sync.WaitGroup // a goroutine for each session

	mu       sync.Mutex
	closed   bool
	sessions map[*sdk.ServerSession]*session
}

// New returns a server. Close ends it.
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

// Stdio serves the client that has started this program, on standard input and output. It returns
// when the client ends the session, or when ctx ends. Nothing else may write to standard output
// meanwhile. If standard input is a terminal, a read of it may stay behind until the program's end.
func (s *Server) Stdio(ctx context.Context) error {
	return s.Serve(ctx, &Lines{Reader: os.Stdin, Writer: os.Stdout})
}

// Serve serves a session on a transport until the client ends it, or until ctx ends. Then the error
// is ctx's. When Serve returns, the session's set is closed. If a write of t is under way when ctx
// ends, Serve waits at most 10 s for it.
//
// The SDK calls t in goroutines of its own, where a panic of t ends the process. Lines turns panics
// of its Reader and Writer into errors.
func (s *Server) Serve(ctx context.Context, t sdk.Transport) error {
	session, err := s.connect(ctx, t)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { session.stop(ctxerr.Of(ctx)) })
	<-session.ended
	err = session.err
	if !stop() {
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		return fmt.Errorf("mcp: serve: %w", err)
	}
	return nil
}

// Connect begins a session for a client in this program, and returns the transport to which the
// client connects. The session ends when the client's does.
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
	session, err := s.sessionOf(ss)
	if err != nil {
		return nil, errors.Join(err, ss.Close())
	}
	return session, nil
}

// Close ends all sessions, waits until their sets are closed, and returns nil. After Close, Serve,
// Stdio and Connect return sandbox.ErrClosed. Close may be called again.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for ss := range s.server.Sessions() {
		s.mu.Lock()
		session := s.sessions[ss]
		s.mu.Unlock()
		if session == nil { // the client has not initialized it
			ss.Close()
			continue
		}
		session.stop(sandbox.ErrClosed)
	}
	s.work.Wait()
	return nil
}
