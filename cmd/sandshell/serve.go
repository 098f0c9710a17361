package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/containers"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/service/pods"
)

func serveCommand() *command {
	c := newCommand("serve", "[flags]", "serves boxes for many users over HTTP")
	c.more = `
Specs are YAML, JSON or TOML files in a directory: each says how boxes of one kind are made and when
they are paused and deleted. See docs/service.md. Boxes outlive sandshell, and the next one finds
them. Clients send the token, which is SANDSHELL_TOKEN of the environment or printed, as
"Authorization: Bearer TOKEN". /openapi.json describes the requests.

With -e2b, programs written for E2B's SDKs use the specs as templates: it prints the variables that
they need. With -debug too, they run with E2B_DEBUG=true on one box of the spec base, or of the
default spec, whose ports are those of localhost. It needs no token: any program of this machine may
use that box. See docs/e2b.md.

The ports that a spec exposes have addresses below that of -boxes, on the same listener. The names
below boxes.localhost lead to this machine. For others, give the address that they use, with a name
server that sends all names below it here: https://boxes.example.com.
`
	c.examples = `
sandshell serve -specs specs
sandshell serve -specs specs -place kube -listen 127.0.0.1:8080
sandshell serve -specs specs -e2b 127.0.0.1:3000
sandshell serve -specs specs -e2b 127.0.0.1:3000 -debug
`
	at := c.placeFlag()
	specs := c.String("specs", "", "the `directory` of specs")
	listen := c.String("listen", "127.0.0.1:8080", "the `address` to listen on")
	boxes := c.String("boxes", "", "the `URL` below which the ports of boxes are (default "+
		"http://boxes.localhost with the port of -listen)")
	state := c.String("state", "", "the `directory` of the service's secret (default sandshell-"+
		"service in the user's configuration directory)")
	name := c.String("name", "", "the service's `name`, which tells its boxes from others' "+
		"(default default)")
	e2b := c.String("e2b", "", "also serve E2B's API, at this `address`")
	debug := c.Bool("debug", false, "with -e2b: serve one box to SDKs with E2B_DEBUG=true")
	c.run = func(ctx context.Context, args []string) error {
		if err := c.need(args, 0, 0); err != nil {
			return err
		}
		if *debug && *e2b == "" {
			return usage("serve: -debug is for E2B's API: give -e2b too, as -e2b 127.0.0.1:3000")
		}
		w, err := at()
		if err != nil {
			return err
		}
		p, err := servicePlace(w)
		if err != nil {
			return err
		}
		if *specs == "" {
			return usage("serve: give -specs and a directory of specs: docs/service.md shows one")
		}
		store, err := service.OpenSpecs(*specs)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: give -specs and a directory of specs: docs/service.md shows one",
				err)
		} else if err != nil {
			return err
		}
		secret, err := secretIn(*state)
		if err != nil {
			return err
		}
		l, err := listenTo("-listen", *listen)
		if err != nil {
			return err
		}
		defer l.Close()
		var theirs []net.Listener
		if *e2b != "" {
			if theirs, err = listenE2B(*e2b, *debug); err != nil {
				return err
			}
			defer closeAll(theirs)
		}
		below, err := boxesURL(*boxes, l)
		if err != nil {
			return err
		}
		s, err := service.New(service.Config{Place: p, Specs: store, Secret: secret, Name: *name,
			URL: service.URLs(below), Logger: warnings()})
		if err != nil {
			return err
		}
		t := clientsToken()
		handler := service.Proxy(s, service.ProxyConfig{URL: below, Logger: warnings(),
			Next: t.need(service.Handler(s, service.HandlerConfig{Logger: warnings()}))})
		if *e2b == "" {
			return errors.Join(serveHTTP(ctx, l, "/", t, handler), s.Close())
		}
		serving, end := context.WithCancel(ctx)
		defer end()
		ended := make(chan error, 1)
		go func() {
			defer end() // one without the other would be a surprise
			ended <- serveE2B(serving, theirs, s, t)
		}()
		err = serveHTTP(serving, l, "/", t, handler)
		end()
		return errors.Join(err, <-ended, s.Close())
	}
	return c
}

// boxesURL returns the URL below which the ports of boxes are, as given or by the listener's port.
func boxesURL(given string, l net.Listener) (*url.URL, error) {
	if given == "" {
		_, port, err := net.SplitHostPort(l.Addr().String())
		return &url.URL{Scheme: "http", Host: "boxes.localhost:" + port}, err
	}
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usage("serve: -boxes %q: give a URL, as https://boxes.example.com", given)
	}
	return u, nil
}

// servicePlace returns the place of a service's boxes.
func servicePlace(w where) (place.Place, error) {
	switch w.(type) {
	case docker:
		return containers.New(containers.Config{}), nil
	case kube:
		return pods.New(kubebox.Config{}), nil
	}
	return nil, usage("serve has -place docker and -place kube only")
}

// secretIn returns the secret in a directory. The first time, it makes one.
func secretIn(dir string) ([]byte, error) {
	if dir == "" {
		config, err := os.UserConfigDir()
		if err != nil {
			return nil, usage("%v: give -state and a directory", err)
		}
		dir = filepath.Join(config, "sandshell-service")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "secret")
	secret, err := os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = make([]byte, 32)
	rand.Read(secret) // never fails
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(secret)
	return secret, errors.Join(err, f.Close())
}
