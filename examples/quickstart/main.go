// Quickstart is a tour of sandshell: a program is built, asked, served, stopped and recorded in a
// sandbox.
//
//	go run ./examples/quickstart [-box auto|docker|local] [-image name] [-record file]
//
// It works in a Docker container where an engine answers and the image is there, else in a
// LocalBox, a directory of this machine, and says which and why. Each step checks what it gets: the
// exit status is 0 only if all is as it should be.
//
// Read on in tour.go, from top to bottom; server.go is one chapter of it. How things are shown is
// in transcript.go.
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

// testImage is made by "make image", and is in no registry.
const testImage = "sandshell-test:latest"

func main() {
	kind := flag.String("box", "auto", "where to work: docker, local, or auto for docker where "+
		"it can be had")
	image := flag.String("image", testImage, "the container's image: one with make and python3")
	record := flag.String("record", "", "a file for a recording of the tour, which asciinema plays")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "quickstart: it takes no arguments but flags (-help lists them), "+
			"not %q\n", flag.Args())
		os.Exit(2)
	}

	// ^C ends the context, which kills the command under way and lets run close the box. A second
	// ^C ends this program at once, as without NotifyContext.
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

// run opens a box, takes the tour and closes the box. Close's error matters too: a container may be
// left.
func run(ctx context.Context, kind, image, record string) (err error) {
	began := time.Now()
	box, why, err := open(ctx, kind, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	t := &tour{box: box, local: box.String() == "LocalBox", transcript: newTranscript(os.Stdout)}
	t.say("This is %s: %s. It was ready in %s.", box, why, took(time.Since(began)))
	if record == "" {
		return t.take(ctx)
	}

	file, err := os.Create(record)
	if err != nil {
		return err
	}
	// it takes the box's place, and closing it closes the box
	rec := recording.New(box, file)
	t.box = rec
	if err := errors.Join(t.take(ctx), rec.Close(), file.Close()); err != nil {
		return err
	}
	t.say("To see it again: asciinema play %s", record)
	return nil
}

// open opens a box of that kind, and says in words which it is. Whatever the box, from here on it
// is a sandbox.Sandbox.
func open(ctx context.Context, kind, image string) (box sandbox.Sandbox, why string, err error) {
	switch kind {
	case "docker":
		box, err = openDocker(ctx, image)
		return box, "a container of the image " + image, err
	case "local":
		box, err = openLocal(ctx)
		return box, "a temporary directory of this machine; nothing is isolated", err
	case "auto":
		box, why, err := open(ctx, "docker", image)
		if err == nil {
			return box, why + ", since a Docker engine answers", nil
		}
		if ctx.Err() != nil {
			return nil, "", err
		}
		reason := err
		box, why, err = open(ctx, "local", image)
		return box, fmt.Sprintf("%s. There is no container because: %v", why, reason), err
	}
	return nil, "", fmt.Errorf("-box is %q: it can be auto, docker or local", kind)
}

// openDocker creates a container. It has no network: nothing here needs one, and Dial reaches it
// all the same.
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
	box, err := sshbox.New(ctx, c)
	if err != nil {
		return nil, err // not (*sshbox.DockerSSHBox)(nil), which as an interface would not be nil
	}
	return box, nil
}

func openLocal(ctx context.Context) (sandbox.Sandbox, error) {
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		return nil, err
	}
	return box, nil
}
