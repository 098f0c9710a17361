// Plugin shows how to write a plugin: something that a sandbox needs, and that is set up in
// sandboxes that lack it.
//
//	go run ./examples/plugin [-box auto|docker|local] [-image name]
//
// The plugin is checkpoint.go, which has ten lines, and the directory checkpoint, which has
// setup.sh and two commands. It needs neither root nor a network, so it works in a Docker container
// and in a LocalBox, which is a directory of this machine. With -box auto, the program uses a
// container if a Docker engine answers and has the image. The exit status is 0 only if every check
// succeeds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"testing/fstest"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// testImage is the image that "make image" builds. No registry has it.
const testImage = "sandshell-test:latest"

func main() {
	log.SetFlags(0)
	log.SetPrefix("plugin: ")
	kind := flag.String("box", "auto", "where to work: docker, local, or auto for docker if an "+
		"engine answers")
	image := flag.String("image", testImage, "the container's image: any with a shell")
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

// run opens a box, installs the plugin, and uses it.
func run(ctx context.Context, kind, image string, out io.Writer) (err error) {
	box, err := open(ctx, kind, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()

	fmt.Fprintf(out, "== Setting up, in %s\n", box)
	p, err := checkpoint(out)
	if err != nil {
		return err
	}
	if err := plugin.Install(ctx, box, p); err != nil {
		return err
	}
	if err := plugin.Install(ctx, box, p); err != nil { // does nothing, as Check succeeds
		return err
	}

	fmt.Fprintln(out, "\n== An agent tries something, and takes it back")
	for _, step := range []struct{ command, want string }{
		{"mkdir work && cd work && echo 'it works' >notes", ""},
		{"checkpoint before", "checkpoint before: 1 files\n"},
		{"rm notes && touch mess", ""},
		{"rollback before", "back at before\n"},
		{"ls && cat notes", "notes\nit works\n"},
	} {
		res, err := box.Execute(ctx, step.command)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "$ %s\n%s", step.command, res.Output)
		if res.ExitCode != 0 || res.Output != step.want {
			return fmt.Errorf("%q printed %q, with exit status %d", step.command, res.Output,
				res.ExitCode)
		}
	}

	fmt.Fprintln(out, "\n== A plugin that cannot be set up says why")
	failing := plugin.Plugin{Name: "flying", Files: fstest.MapFS{
		"setup.sh": {Data: []byte("#!/bin/sh\necho looking for wings\necho there are none " +
			">&2\nexit 4\n")},
	}}
	var failed *plugin.Error
	if err := plugin.Install(ctx, box, failing); !errors.As(err, &failed) {
		return fmt.Errorf("setup.sh has ended with 4, and the error is: %w", err)
	}
	fmt.Fprintf(out, "%v\n(of %s, exit status %d)\n", failed, failed.Plugin, failed.ExitCode)
	return nil
}

// open opens a box of a kind. plugin.Install takes any sandbox.Sandbox.
func open(ctx context.Context, kind, image string) (sandbox.Sandbox, error) {
	switch kind {
	case "docker":
		c := sshbox.Config{Image: image, Dir: "/tmp", Network: "none"}
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
