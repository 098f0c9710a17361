// Hostservice gives a box that has no network one service of this program: a store of names and
// values, by HTTP.
//
//	go run ./examples/hostservice [-box auto|docker|local] [-image name]
//
// The program listens inside the box (Sandbox.Listen) and serves with net/http, as on any listener.
// To the programs of the box the store is a port of their own loopback; nothing else outside can be
// reached from there. A proxy to a package index, a model's API with the key added on this side, or
// a broker of secrets is built the same way. It works in a Docker container where an engine answers
// and the image is there, else in a LocalBox; both need python3. The exit status is 0 only if all
// is as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// testImage is made by "make image", and is in no registry.
const testImage = "sandshell-test:latest"

func main() {
	kind := flag.String("box", "auto", "where to work: docker, local, or auto for docker where "+
		"it can be had")
	image := flag.String("image", testImage, "the container's image: any with python3")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "hostservice: it takes no arguments but flags (-help lists them), "+
			"not %q\n", flag.Args())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kind, *image, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hostservice:", err)
		os.Exit(1)
	}
}

// kv is how the box's programs speak to the store; curl would do, where there is one.
const kv = `kv() { python3 -c '
import sys, urllib.error, urllib.request
method, url = sys.argv[1], "http://127.0.0.1:%s/" + sys.argv[2]
data = sys.argv[3].encode() if len(sys.argv) > 3 else None
try: print(urllib.request.urlopen(urllib.request.Request(url, data, method=method)).read().decode())
except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip()); sys.exit(1)
' "$@"; }`

// run opens a box, serves it the store, and has its shell use that.
func run(ctx context.Context, kind, image string, out io.Writer) (err error) {
	box, err := open(ctx, kind, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()

	// a port that is free: in a LocalBox, 8080 may be somebody's
	listener, err := box.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	values := &store{values: map[string]string{"greeting": "hello from outside"}}
	server := &http.Server{
		Handler:           values,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute, // a program of the box may leave the answer unread
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(atMost(listener, connections)) }()
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		// the listener, too; first, requests under way are answered
		err = errors.Join(err, server.Shutdown(stopping), server.Close())
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
	}()
	fmt.Fprintf(out, "== A store at %s, inside of %s\n", listener.Addr(), box)

	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	if _, err := box.Execute(ctx, fmt.Sprintf(kv, port)); err != nil {
		return err
	}
	for _, step := range []struct {
		command, want string
		status        int
	}{
		{"kv GET greeting", "hello from outside\n", 0},
		{"kv PUT answer \"$((6 * 7))\"", "stored\n", 0},
		{"kv GET answer", "42\n", 0},
		{"kv GET question", "404 there is no question\n", 1},
		{"kv PUT large \"$(head -c 100000 /dev/zero | tr '\\0' x)\"",
			"413 a value has at most 65536 bytes\n", 1},
	} {
		res, err := box.Execute(ctx, step.command)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "$ %s\n%s", step.command, res.Output)
		if res.ExitCode != step.status || res.Output != step.want {
			return fmt.Errorf("%q printed %q, with exit status %d", step.command, res.Output,
				res.ExitCode)
		}
	}
	// %q: the box has put it there
	fmt.Fprintf(out, "== Out here, the answer is %q\n", values.get("answer"))
	return nil
}

// open opens a box of that kind.
func open(ctx context.Context, kind, image string) (sandbox.Sandbox, error) {
	if kind == "docker" || kind == "auto" {
		c := sshbox.Config{Image: image, Network: "none"}
		if image == testImage {
			c.Pull = sshbox.PullNever
		}
		box, err := sshbox.New(ctx, c)
		if err == nil {
			return box, nil
		}
		if kind == "docker" || ctx.Err() != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, "hostservice: in a LocalBox, since there is no container:", err)
	} else if kind != "local" {
		return nil, fmt.Errorf("-box is %q: it can be auto, docker or local", kind)
	}
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		return nil, err // not (*localbox.LocalBox)(nil), which as an interface would not be nil
	}
	return box, nil
}
