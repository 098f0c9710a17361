package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools/mcp"
)

func mcpCommand() *command {
	c := newCommand("mcp", "[flags] IMAGE", "gives an MCP client a box: a shell, files and jobs")
	c.more = `
The client starts sandshell and speaks with it over standard input and output. With -listen, any
number of clients come over HTTP, at /mcp, each with a box of its own, and send the token, which is
SANDSHELL_TOKEN of the environment or printed, as "Authorization: Bearer TOKEN". The box ends with
its client. Places without images, ssh and local, take no IMAGE.

With -history, the model can save the files of a directory, and bring them back.

With -allow and -secret, a box reaches what the rules allow, as docs/egress.md says. The model reads
what that is, and what was refused.
`
	c.examples = `
sandshell mcp -network none debian:stable-slim
sandshell mcp -allow packages.example.com -secret KEY=api.example.com debian:stable-slim
sandshell mcp -listen 127.0.0.1:8080 debian:stable-slim
sandshell mcp -place local -dir "$PWD"
sandshell mcp -history /work -dir /work debian:stable-slim
`
	c.takes = []argument{takesNothing}
	at := c.placeFlag()
	spec := c.specFlags()
	out := c.egressFlags()
	history := c.String("history", "",
		"give the tools checkpoint and restore, for this `directory` of the box")
	listen := c.String("listen", "", "the `address` to serve HTTP on")
	c.run = func(ctx context.Context, args []string) error {
		gate, err := out.gate(spec, false)
		if err != nil {
			return err
		}
		if gate != nil {
			defer gate.Close()
		}
		w, place, err := makingPlace(c, at, spec, args, making{boxes: 100})
		if err != nil {
			return out.explain(err)
		}
		instructions := "The tools work in a box of your own, which is removed at the end."
		if !w.hasImages() {
			instructions = "The tools work on a machine that the user uses too: take care."
		}
		server, err := mcp.New(mcp.Config{Place: place, Spec: *spec, Egress: gate,
			History: *history, Logger: warnings(), Instructions: instructions})
		if err != nil {
			return err
		}
		defer server.Close()
		if *listen == "" {
			return server.Stdio(ctx)
		}
		mux := http.NewServeMux()
		mux.Handle("/mcp", server.Handler())
		l, err := net.Listen("tcp", *listen)
		if err != nil {
			return err
		}
		t := clientsToken()
		return serveHTTP(ctx, l, "/mcp", t, t.need(mux))
	}
	return c
}

// makingPlace returns the place for boxes that a spec says, and takes the image from args. It
// refuses what the place cannot honour before any box is made.
func makingPlace(c *command, at func() (where, error), spec *sandbox.Spec, args []string,
	o making) (where, sandbox.Place, error) {
	w, err := at()
	if err != nil {
		return nil, nil, err
	}
	images := 0
	if w.hasImages() {
		images = 1
	}
	if err := c.need(args, images, images); err != nil {
		return nil, nil, err
	}
	if images == 1 {
		spec.Image = args[0]
	}
	place, err := w.place(o)
	if err != nil {
		return nil, nil, err
	}
	if err := sandbox.CheckSpec(place, *spec); err != nil {
		return nil, nil, err
	}
	return w, place, nil
}

// warnings returns a logger of warnings on standard error.
func warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
