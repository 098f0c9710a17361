// Browser visits a page in a sandbox. A job in the box serves the page. Chromium, also in the box,
// opens it, fills in a form, clicks and takes a screenshot.
//
//	go run ./examples/browser [-image name] [-screenshot browser.png]
//
// It needs a Docker engine. The first run installs Chromium, which needs a network and takes a
// minute or two. The engine keeps the image with Chromium for later runs.
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
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("browser: ")
	image := flag.String("image", "sandshell-test", "the container's image: a Debian with python3")
	screenshot := flag.String("screenshot", "browser.png", "the file for the screenshot")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Printf("unexpected argument %q: -help lists the flags", flag.Arg(0))
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second ^C ends the program at once
	if err := run(ctx, *image, *screenshot, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// page is the page that the server in the box serves.
const page = `<!DOCTYPE html>
<meta charset="utf-8">
<title>Guest book</title>
<body style="font: 20px sans-serif; margin: 40px">
<h1>Guest book</h1>
<label>Your name <input id="name"></label>
<button onclick="list.append(Object.assign(document.createElement('li'), { textContent: document.querySelector('#name').value + ' was here' }))">Sign</button>
<ul id="list"></ul>
`

func run(ctx context.Context, image, screenshot string, out io.Writer) (err error) {
	fmt.Fprintln(out, "Starting a container with Chromium …")
	box, err := sshbox.New(ctx, sshbox.Config{
		Image:    image,
		Plugins:  []plugin.Plugin{browser.Plugin()},
		Progress: func(p sshbox.PullProgress) { fmt.Fprintln(out, "  ", p.Status) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()

	url, err := serve(ctx, box)
	if err != nil {
		return err
	}
	b, err := browser.Open(ctx, box, browser.Config{Width: 800, Height: 400})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()

	// The URL's host is the box's loopback. The browser runs there too.
	if err := b.Navigate(ctx, url); err != nil {
		return err
	}
	if err := b.Fill(ctx, "#name", "Zoë"); err != nil { // a CSS selector
		return err
	}
	tree, err := b.AccessibilityTree(ctx) // the text to show to a model
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe page at %s:\n%s", url, tree) // the tree quotes what the page says
	ref := regexp.MustCompile(`button "Sign".* (ref=\d+)`).FindStringSubmatch(tree)
	if ref == nil {
		return errors.New("the tree has no button")
	}
	if err := b.Click(ctx, ref[1]); err != nil { // a model would choose this ref
		return err
	}
	text, err := b.Text(ctx)
	if err != nil {
		return err
	}
	// %q, because the text of a page could hold escape sequences.
	fmt.Fprintf(out, "\nAfter a click on %s it says %q.\n", ref[1], text)
	if !strings.Contains(text, "Zoë was here") {
		return errors.New("the click has not changed the page")
	}
	png, err := b.Screenshot(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(screenshot, png, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe screenshot is in %s.\n", screenshot)
	return nil
}

// serve starts a job that serves the page, and returns its URL.
func serve(ctx context.Context, box sandbox.Sandbox) (url string, err error) {
	temp, err := os.MkdirTemp("", "browser-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := os.WriteFile(filepath.Join(temp, "index.html"), []byte(page), 0o644); err != nil {
		return "", err
	}
	if err := box.CopyTo(ctx, temp, "/tmp/site"); err != nil {
		return "", err
	}
	// Port 0 means any free port. The server prints which one it has.
	job, err := box.Background(ctx, "python3 -m http.server --bind 127.0.0.1 --directory "+
		"/tmp/site 0")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	serving := regexp.MustCompile(`Serving HTTP on \S+ port (\d+)`)
	for {
		log, _, err := job.Logs(ctx, 0)
		if err != nil {
			return "", err
		}
		if m := serving.FindSubmatch(log); m != nil {
			return "http://127.0.0.1:" + string(m[1]) + "/", nil
		}
		select {
		case <-job.Done():
			return "", fmt.Errorf("the server has ended: %s", log)
		case <-ctx.Done():
			return "", fmt.Errorf("the server has not printed its port: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
