// Jupyter runs cells in an IPython kernel in a sandbox, and brings out the figure that one of them
// plots, as a PNG.
//
//	go run ./examples/jupyter [-box auto|docker|local] [-image name] [-o plot.png]
//
// It works in a Docker container where an engine answers and the image is there, else in a
// LocalBox, a directory of this machine; that needs a python3 with ipykernel, jupyter_client and
// matplotlib.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"unicode"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// testImage is made by "make image", and is in no registry.
const testImage = "sandshell-test:latest"

//go:embed matplotlib
var files embed.FS

func main() {
	kind := flag.String("box", "auto", "where to work: docker, local, or auto for docker where "+
		"it can be had")
	image := flag.String("image", testImage, "the container's image, a Debian")
	file := flag.String("o", "plot.png", "where the figure goes")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "jupyter: it takes no arguments but flags (-help lists them), not "+
			"%q\n", flag.Args())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, *kind, *image, *file, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "jupyter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kind, image, file string, out io.Writer) (err error) {
	box, err := open(ctx, kind, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	fmt.Fprintf(out, "This is %s.\n", box)

	client, err := jupyter.Connect(ctx, box, jupyter.Config{})
	if err != nil {
		return err
	}
	defer client.Close()

	// A cell: what it prints comes as it is printed, and its value is in the Result.
	result, err := cell(ctx, client, out, `
import math
angles = [n * math.tau / 200 for n in range(201)]
print(len(angles), "angles")
max(math.sin(a) for a in angles)`)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "The sine is at most", printable(result.Text))

	// The kernel remembers angles. The figure comes as a PNG.
	result, err = cell(ctx, client, out, `
import matplotlib.pyplot as plt
plt.plot(angles, [math.sin(a) for a in angles], color="crimson")
plt.title("sine")
plt.show()`)
	if err != nil {
		return err
	}
	figures := result.All(jupyter.ImagePNG)
	if len(figures) != 1 {
		return fmt.Errorf("there are %d figures", len(figures))
	}
	if err := os.WriteFile(file, figures[0], 0o644); err != nil {
		return err
	}
	fmt.Fprintln(out, "The plot is in", file)

	// In the box there is execute_cli, for the same kernel. A cell that raises is no error of
	// Execute: it exits with 1.
	res, err := box.Execute(ctx, "echo 'angles[1000]' | execute_cli")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "execute_cli exited with %d:\n%s", res.ExitCode, res.Output)
	return nil
}

// cell runs a cell that is not to raise.
func cell(ctx context.Context, client *jupyter.Client, out io.Writer,
	code string) (*jupyter.Result, error) {
	result, err := client.Run(ctx, code, jupyter.Stream(func(e jupyter.Event) {
		io.WriteString(out, printable(e.Stdout+e.Stderr))
	}))
	if err != nil {
		return nil, err
	}
	if result.Error != nil {
		return nil, fmt.Errorf("%w\n%s", result.Error, printable(result.Error.Traceback))
	}
	return result, nil
}

// printable returns what a kernel says without what could change the terminal's title, clear its
// screen, or show the text in another order than it is in.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// open opens a box of that kind that has a kernel and matplotlib.
func open(ctx context.Context, kind, image string) (sandbox.Sandbox, error) {
	setup, err := fs.Sub(files, "matplotlib")
	if err != nil {
		return nil, err
	}
	plugins := []plugin.Plugin{
		jupyter.Plugin(),
		{Name: "matplotlib", Requires: []string{"jupyter"}, Files: setup},
	}
	switch kind {
	case "docker":
		c := sshbox.Config{Image: image, Plugins: plugins, Progress: func(p sshbox.PullProgress) {
			fmt.Fprintln(os.Stderr, p.Status) // the first time, setting up takes minutes
		}}
		if image == testImage {
			c.Pull = sshbox.PullNever
		}
		box, err := sshbox.New(ctx, c)
		if err != nil {
			// not (*sshbox.DockerSSHBox)(nil), which as an interface would not be nil
			return nil, err
		}
		return box, nil
	case "local":
		box, err := localbox.New(ctx, localbox.Config{})
		if err != nil {
			return nil, err
		}
		if err := box.InitPlugins(ctx, plugins...); err != nil {
			return nil, errors.Join(err, box.Close())
		}
		return box, nil
	case "auto":
		box, err := open(ctx, "docker", image)
		if err == nil || ctx.Err() != nil {
			return box, err
		}
		fmt.Fprintf(os.Stderr, "There is no container because: %v\n", err)
		return open(ctx, "local", image)
	}
	return nil, fmt.Errorf("-box is %q: it can be auto, docker or local", kind)
}
