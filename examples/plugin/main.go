// Plugin shows how to write a plugin of one's own: something that a sandbox has to have, and is set
// up where it is missing.
//
//	go run ./examples/plugin [-box auto|docker|local] [-image name]
//
// The plugin is in checkpoint.go, ten lines, and in checkpoint/, a setup.sh with two commands. It
// needs neither root nor network, and so works in a Docker container, where an engine answers and
// the image is there, and in a LocalBox, a directory of this machine. The exit status is 0 only if
// all is as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing/fstest"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// testImage is made by "make image", and is in no registry.
const testImage = "sandshell-test:latest"

func main() {
	kind := flag.String("box", "auto", "where to work: docker, local, or auto for docker where "+
		"it can be had")
	image := flag.String("image", testImage, "the container's image: any with a shell")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "plugin: it takes no arguments but flags (-help lists them), not "+
			"%q\n", flag.Args())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kind, *image, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
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
	if err := plugin.Install(ctx, box, p); err != nil { // it is there: nothing runs
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

	fmt.Fprintln(out, "\n== One that cannot be set up says why")
	failing := plugin.Plugin{Name: "flying", Files: fstest.MapFS{
		"setup.sh": {Data: []byte("#!/bin/sh\necho looking for wings\necho there are none " +
			">&2\nexit 4\n")},
	}}
	var failed *plugin.Error
	if err := plugin.Install(ctx, box, failing); !errors.As(err, &failed) {
		return fmt.Errorf("a setup.sh has ended with 4, and the error is: %w", err)
	}
	fmt.Fprintf(out, "%v\n(of %s, exit status %d)\n", failed, failed.Plugin, failed.ExitCode)
	return nil
}

// open opens a box of that kind. Install takes any sandbox.Sandbox.
func open(ctx context.Context, kind, image string) (sandbox.Sandbox, error) {
	if kind == "docker" || kind == "auto" {
		c := sshbox.Config{Image: image, Dir: "/tmp", Network: "none"}
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
		fmt.Fprintln(os.Stderr, "plugin: in a LocalBox, since there is no container:", err)
	} else if kind != "local" {
		return nil, fmt.Errorf("-box is %q: it can be auto, docker or local", kind)
	}
	box, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		return nil, err // not (*localbox.LocalBox)(nil), which as an interface would not be nil
	}
	return box, nil
}
