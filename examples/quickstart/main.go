// Quickstart is a tour of sandshell. In a sandbox it builds a program, answers a question, runs a
// server and stops a loop.
//
//	go run ./examples/quickstart [-box auto|docker|local] [-image name] [-record file]
//
// If a Docker engine answers and has the image, the tour works in a container. Otherwise it works
// in a LocalBox, which is a directory of this machine. It says which, and why. Each step checks
// what it gets. The exit status is 0 only if every check succeeds.
//
// To read the program, go on with tour.go, from top to bottom. server.go has one chapter of the
// tour, and transcript.go prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/recording"
	"github.com/sandshell/sandshell/sshbox"
)

// testImage is the image that "make image" builds. No registry has it.
const testImage = "sandshell-test:latest"

func main() {
	kind := flag.String("box", "auto", "where to work: docker, local, or auto for docker if an "+
		"engine answers")
	image := flag.String("image", testImage, "the container's image: one with make and python3")
	record := flag.String("record", "", "a file for a recording of the tour, which asciinema plays")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "quickstart: it takes only flags (-help lists them), not %q\n",
			flag.Args())
		os.Exit(2)
	}

	// ^C ends the context. That kills the command under way, and run closes the box. A second ^C
	// ends this program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, *kind, *image, *record)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\nquickstart: interrupted; the box is closed")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\nquickstart:", err)
		os.Exit(1)
	}
}

// run opens a box, takes the tour and closes the box. It returns the error of Close too, because
// that may mean that a container is left.
func run(ctx context.Context, kind, image, record string) (err error) {
	began := time.Now()
	box, why, err := open(ctx, kind, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	t := &tour{box: box, local: box.String() == "LocalBox", transcript: newTranscript(os.Stdout)}
	t.say("This is %s: %s. It was ready in %s.", box, why, rounded(time.Since(began)))
	if record == "" {
		return t.run(ctx)
	}

	file, err := os.Create(record)
	if err != nil {
		return err
	}
	// The recorder takes the box's place, and its Close closes the box.
	rec := recording.New(box, file)
	t.box = rec
	if err := errors.Join(t.run(ctx), rec.Close(), file.Close()); err != nil {
		return err
	}
	t.say("To see it again: asciinema play %s", record)
	return nil
}

// open opens a box of a kind. why says what the box is. The rest of the program sees only a
// sandbox.Sandbox.
func open(ctx context.Context, kind, image string) (box sandbox.Sandbox, why string, err error) {
	switch kind {
	case "docker":
		box, err = openDocker(ctx, image)
		return box, "a container of the image " + image, err
	case "local":
		box, err = localbox.New(ctx, localbox.Config{})
		return box, "a temporary directory of this machine; nothing is isolated", err
	case "auto":
		box, why, err := open(ctx, "docker", image)
		if err == nil {
			return box, why + ", because a Docker engine answers", nil
		}
		if ctx.Err() != nil {
			return nil, "", err
		}
		reason := err
		box, why, err = open(ctx, "local", image)
		return box, fmt.Sprintf("%s. There is no container because: %v", why, reason), err
	}
	return nil, "", fmt.Errorf("-box is %q: give auto, docker or local", kind)
}

// openDocker creates a container. The container has no network, because the tour needs none. Dial
// reaches it all the same.
func openDocker(ctx context.Context, image string) (sandbox.Sandbox, error) {
	c := sshbox.Config{
		Image: image, Dir: "/tmp", Network: "none",
		Progress: func(p sshbox.PullProgress) {
			fmt.Fprintln(os.Stderr, "pulling", p.Image, p.Layer, p.Status)
		},
	}
	if image == testImage {
		c.Pull = sshbox.PullNever
	}
	return sshbox.New(ctx, c)
}
