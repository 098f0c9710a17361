// Jupyter runs cells in an IPython kernel in a sandbox, and writes the figure that one of them
// plots to a PNG file.
//
//	go run ./examples/jupyter [-box auto|docker|local] [-image name] [-o plot.png]
//
// With -box auto, the sandbox is a Docker container if an engine answers and has the image.
// Otherwise it is a LocalBox, which is a directory of this machine. Then this machine needs a
// python3 with ipykernel, jupyter_client and matplotlib.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
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

// testImage is the image that "make image" builds. No registry has it.
const testImage = "sandshell-test:latest"

//go:embed matplotlib
var files embed.FS

func main() {
	log.SetFlags(0)
	log.SetPrefix("jupyter: ")
	kind := flag.String("box", "auto", "where to work: docker, local, or auto for docker if an "+
		"engine answers")
	image := flag.String("image", testImage, "the container's image, a Debian")
	file := flag.String("o", "plot.png", "the file for the figure")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Printf("unexpected argument %q: -help lists the flags", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, *kind, *image, *file, os.Stdout); err != nil {
		log.Fatal(err)
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

	// The output of a cell comes as it is printed. The Result has the value of the last expression.
	result, err := cell(ctx, client, out, `
import math
angles = [n * math.tau / 200 for n in range(201)]
print(len(angles), "angles")
max(math.sin(a) for a in angles)`)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "The sine is at most", printable(result.Text))

	// The kernel remembers angles. The Result has the figure as a PNG.
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
		return fmt.Errorf("the cell has shown %d figures, not 1", len(figures))
	}
	if err := os.WriteFile(file, figures[0], 0o644); err != nil {
		return err
	}
	fmt.Fprintln(out, "The plot is in", file)

	// The command execute_cli of the box uses the same kernel. If a cell raises an exception,
	// execute_cli exits with 1. To Execute that is no error.
	res, err := box.Execute(ctx, "echo 'angles[1000]' | execute_cli")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "execute_cli exited with %d:\n%s", res.ExitCode, res.Output)
	return nil
}

// cell runs a cell, and returns an error if the cell raises an exception.
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

// printable returns a text of the kernel without the characters that could clear the terminal,
// change its title, or change the order in which it shows the text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// open opens a box of a kind, with a kernel and matplotlib.
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
			log.Println(p.Status) // the first time, the setup takes minutes
		}}
		if image == testImage {
			c.Pull = sshbox.PullNever
		}
		return sshbox.New(ctx, c)
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
		log.Println("using a LocalBox, because there is no container:", err)
		return open(ctx, "local", image)
	}
	return nil, fmt.Errorf("-box is %q: give auto, docker or local", kind)
}
