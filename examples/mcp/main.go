// Mcp gives an MCP client, such as an agent, an editor or a chat program, a sandbox: a shell that
// stays, files and background jobs. Each session has a container of its own. The client starts the
// program, and speaks with it over standard input and output:
//
//	go run ./examples/mcp [-image name] [-network name] [-linger 30s] [-local] [-listen :8080]
//		[-allow rule]... [-secret NAME=rule]...
//
// With -local, commands run on this machine, with all rights of the user who runs the program. With
// -listen, it serves any number of clients over streamable HTTP at /mcp, and does not authenticate
// them. With -allow, a container reaches what the rules allow, and with -secret its programs use a
// variable of this program's without seeing it: docs/egress.md has the rules. docs/agents.md has
// the configuration for a client.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/sandshell/sandshell/tools/mcp"
)

// testImage is the image that "make image" builds. No registry has it.
const testImage = "sandshell-test"

// settings are the flags of the command line.
type settings struct {
	image, network, listen string
	local                  bool
	linger                 time.Duration
	allow                  []string // rules of package egress
	secrets                []egress.Secret
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("mcp: ")
	var s settings
	flag.StringVar(&s.image, "image", testImage, "the image of the containers")
	flag.StringVar(&s.network, "network", "none", "the network of the containers")
	flag.StringVar(&s.listen, "listen", "", "the address to serve HTTP on, instead of standard "+
		"input and output")
	flag.DurationVar(&s.linger, "linger", 30*time.Second,
		"how long a container goes on if this program is killed")
	flag.BoolVar(&s.local, "local", false, "run commands on this machine, in this directory, "+
		"instead of a container")
	flag.Func("allow", "what the containers may reach, as a `rule`: packages.example.com; may be "+
		"repeated", func(rule string) error {
		s.allow = append(s.allow, rule)
		return nil
	})
	flag.Func("secret", "a variable of this program's that programs use and never see, as "+
		"`NAME=rule` with the rule for where it goes; may be repeated", s.addSecret)
	flag.Parse()
	if flag.NArg() > 0 {
		log.Printf("unexpected argument %q: -help lists the flags", flag.Arg(0))
		os.Exit(2)
	}
	flag.Visit(func(f *flag.Flag) {
		if s.local && (f.Name == "image" || f.Name == "network" || f.Name == "linger") {
			log.Printf("-%s is for a container, and -local has none: leave one of them out", f.Name)
			os.Exit(2)
		}
	})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second ^C ends the program at once
	if err := run(ctx, s, os.Stderr); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// run serves until the client ends the session, or until ctx ends. Only the protocol may write to
// standard output. Everything else goes to stderr.
func run(ctx context.Context, s settings, stderr io.Writer) (err error) {
	server, closeAll, err := newServer(s, slog.New(slog.NewTextHandler(stderr,
		&slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	if s.listen == "" {
		return server.Stdio(ctx)
	}
	return serveHTTP(ctx, s.listen, server.Handler(), stderr)
}

// newServer returns the MCP server, and a function that closes it with its boxes.
func newServer(s settings,
	logger *slog.Logger) (server *mcp.Server, closeAll func() error, err error) {
	gate, err := s.gate()
	if err != nil {
		return nil, nil, err
	}
	open, closePool, err := boxes(s, logger)
	if err != nil {
		return nil, nil, err
	}
	server, err = mcp.New(mcp.Config{Logger: logger, Instructions: instructions(s),
		Open: func(ctx context.Context) (*tools.Set, error) {
			box, err := open(ctx)
			if err != nil {
				return nil, err
			}
			return boxTools(ctx, box, gate)
		}})
	if err != nil {
		return nil, nil, errors.Join(err, closePool())
	}
	return server, func() error {
		err := errors.Join(server.Close(), closePool())
		if gate != nil {
			err = errors.Join(err, gate.Close())
		}
		return err
	}, nil
}

// instructions returns what the server tells the model.
func instructions(s settings) string {
	if s.local {
		return "The tools work on the user's own machine: take care."
	}
	return "The tools work in a container of your own, which is removed when the session ends."
}

// boxes returns a function that makes the box of a session. Over HTTP, a pool makes the container
// for the next client ahead.
func boxes(s settings,
	logger *slog.Logger) (
	open func(ctx context.Context) (sandbox.Sandbox, error), closePool func() error, err error,
) {
	none := func() error { return nil }
	c := sshbox.Config{Image: s.image, Network: s.network, Linger: s.linger, Logger: logger}
	if s.image == testImage {
		c.Pull = sshbox.PullNever
	}
	switch {
	case s.local:
		dir, err := os.Getwd()
		return func(ctx context.Context) (sandbox.Sandbox, error) {
			return localbox.New(ctx, localbox.Config{Dir: dir})
		}, none, err
	case s.listen == "":
		return func(ctx context.Context) (sandbox.Sandbox, error) {
			return sshbox.New(ctx, c)
		}, none, nil
	}
	pool, err := sshbox.NewPool(c, 1)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (sandbox.Sandbox, error) {
		return pool.Get(ctx, sshbox.Handover{})
	}, pool.Close, nil
}

// serveHTTP serves the handler at /mcp until ctx ends.
func serveHTTP(ctx context.Context, address string, handler http.Handler, out io.Writer) error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	h := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	stop := context.AfterFunc(ctx, func() { h.Close() }) // Shutdown would wait for streams
	defer stop()
	fmt.Fprintf(out, "serving http://%s/mcp\n", l.Addr())
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
