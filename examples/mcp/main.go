// Mcp gives an MCP client (an agent, an editor, a chat program) a sandbox: a shell that stays,
// files and background jobs, in a container of its own for each session. The client starts it, and
// speaks with it by standard input and output:
//
//	go run ./examples/mcp [-image name] [-network name] [-linger 30s] [-local] [-listen :8080]
//
// With -local commands run on this machine, as the user who runs it, with all that user may do.
// With -listen it serves any number of clients by streamable HTTP at /mcp; it asks nobody who they
// are. The README has the configuration for a client.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/sandshell/sandshell/tools/mcp"
)

// testImage is made by "make image", and is in no registry.
const testImage = "sandshell-test"

// settings are what the command line says.
type settings struct {
	image, network, listen string
	local                  bool
	linger                 time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.image, "image", testImage, "the image of the containers")
	flag.StringVar(&s.network, "network", "none", "the network of the containers")
	flag.StringVar(&s.listen, "listen", "", "the address to serve HTTP on, instead of standard "+
		"input and output")
	flag.DurationVar(&s.linger, "linger", 30*time.Second,
		"for how long a container goes on after this program was killed")
	flag.BoolVar(&s.local, "local", false, "run commands on this machine, in this directory, not "+
		"in a container")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "mcp: it takes no arguments but flags (-help lists them), not %q\n",
			flag.Args())
		os.Exit(2)
	}
	flag.Visit(func(f *flag.Flag) {
		if s.local && (f.Name == "image" || f.Name == "network" || f.Name == "linger") {
			fmt.Fprintf(os.Stderr, "mcp: -%s is about a container, and -local has none: leave "+
				"out one of them\n", f.Name)
			os.Exit(2)
		}
	})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second ^C ends the program at once
	if err := run(ctx, s, os.Stderr); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "mcp:", err)
		os.Exit(1)
	}
}

// run serves until the client ends the session, or ctx ends. Standard output is the protocol's: all
// else goes to log.
func run(ctx context.Context, s settings, log io.Writer) (err error) {
	server, closeAll, err := newServer(s, slog.New(slog.NewTextHandler(log,
		&slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	if s.listen == "" {
		return server.Stdio(ctx)
	}
	return serveHTTP(ctx, s.listen, server.Handler(), log)
}

func newServer(s settings,
	logger *slog.Logger) (server *mcp.Server, closeAll func() error, err error) {
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
			return tools.New(tools.Box(box, tools.Config{}), tools.Closing(box.Close))
		}})
	if err != nil {
		return nil, nil, errors.Join(err, closePool())
	}
	return server, func() error { return errors.Join(server.Close(), closePool()) }, nil
}

// instructions are for the model.
func instructions(s settings) string {
	if s.local {
		return "The tools work on the user's own machine: take care."
	}
	return "The tools work in a container of your own, which goes when the session ends."
}

// boxes returns a function that makes a box for a session. Of containers one is made ahead of each
// client, where there can be several.
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

func serveHTTP(ctx context.Context, address string, handler http.Handler, log io.Writer) error {
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
	stop := context.AfterFunc(ctx, func() { h.Close() }) // a stream never ends by itself
	defer stop()
	fmt.Fprintf(log, "serving http://%s/mcp\n", l.Addr())
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
