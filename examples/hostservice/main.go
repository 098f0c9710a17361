// Hostservice gives a box without a network one service of this program: a store of values, over
// HTTP.
//
//	go run ./examples/hostservice [-box auto|docker|local] [-image name]
//
// The program listens on an address inside the box (Sandbox.Listen), and serves with net/http as on
// any listener. Programs in the box see the store at a port of their loopback, and can reach
// nothing else outside. In the same way you can build a proxy to a package index, or to a model's
// API with the key added outside, or a broker of secrets.
//
// With -box auto, the box is a Docker container if an engine answers and has the image. Otherwise
// it is a LocalBox, which is a directory of this machine. Both need python3. The exit status is 0
// only if every check succeeds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
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

// testImage is the image that "make image" builds. No registry has it.
const testImage = "sandshell-test:latest"

func main() {
	log.SetFlags(0)
	log.SetPrefix("hostservice: ")
	kind := flag.String("box", "auto", "where to work: docker, local, or auto for docker if an "+
		"engine answers")
	image := flag.String("image", testImage, "the container's image: any with python3")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Printf("unexpected argument %q: -help lists the flags", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kind, *image, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// kv is a shell function that calls the store, as curl would. The image need not have curl.
const kv = `kv() { python3 -c '
import sys, urllib.error, urllib.request
method, url = sys.argv[1], "http://127.0.0.1:%s/" + sys.argv[2]
data = sys.argv[3].encode() if len(sys.argv) > 3 else None
try: print(urllib.request.urlopen(urllib.request.Request(url, data, method=method)).read().decode())
except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip()); sys.exit(1)
' "$@"; }`

// run opens a box, serves the store there, and calls it from the box's shell.
func run(ctx context.Context, kind, image string, out io.Writer) (err error) {
	box, err := open(ctx, kind, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()

	// Port 0 means any free port. In a LocalBox, another program may have a fixed one.
	listener, err := box.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	values := &store{values: map[string]string{"greeting": "hello from outside"}}
	server := &http.Server{
		Handler:           values,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute, // a program in the box may never read the response
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(limit(listener, maxConns)) }()
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		// Shutdown closes the listener, and waits for the requests under way.
		err = errors.Join(err, server.Shutdown(stopping), server.Close())
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
	}()
	fmt.Fprintf(out, "== A store at %s in %s\n", listener.Addr(), box)

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
	// %q, because a value from the box could hold escape sequences.
	fmt.Fprintf(out, "== Outside, the answer is %q\n", values.get("answer"))
	return nil
}

// open opens a box of a kind.
func open(ctx context.Context, kind, image string) (sandbox.Sandbox, error) {
	switch kind {
	case "docker":
		c := sshbox.Config{Image: image, Network: "none"}
		if image == testImage {
			c.Pull = sshbox.PullNever
		}
		return sshbox.New(ctx, c)
	case "local":
		return localbox.New(ctx, localbox.Config{})
	case "auto":
		box, err := open(ctx, "docker", image)
		if err == nil || ctx.Err() != nil {
			return box, err
		}
		log.Println("using a LocalBox, because there is no container:", err)
		return open(ctx, "local", image)
	}
	return nil, fmt.Errorf("-box is %q: give auto, docker or local", kind)
}
