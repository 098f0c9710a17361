// Service serves many boxes: the HTTP API of package service, the ports of the boxes, and a web
// page. On the page a person starts and stops boxes, sees what they use, and opens terminals in
// them.
//
//	go run ./examples/service [-listen 127.0.0.1:8080] [-image name] [-specs directory]
//		[-state directory] [-kube]
//
// The program prints an address with a token. Open it in a browser. The port NAME of the box ID is
// at NAME-ID.boxes.localhost, which browsers resolve to this machine. Boxes outlive the program,
// and the next run finds them.
//
// It needs a Docker engine or, with -kube, a Kubernetes cluster: the current context of kubectl and
// its namespace.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/containers"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/service/pods"
	"github.com/sandshell/sandshell/sshbox"
	"golang.org/x/net/netutil"
)

// settings are the flags of the command line.
type settings struct {
	listen, image, specs, state string
	kube                        bool
	name                        string // of the service; tests set it
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("service: ")
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8080", "the address to listen on")
	flag.StringVar(&s.image, "image", "sandshell-test",
		"the image of the boxes, if there is no -specs")
	flag.StringVar(&s.specs, "specs", "", "a directory of specs, each a YAML file")
	flag.StringVar(&s.state, "state", "", "the directory of the service's secret (default: "+
		"sandshell-service in the user's configuration directory)")
	flag.BoolVar(&s.kube, "kube", false, "make the boxes as pods, in the current context's "+
		"namespace")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Printf("unexpected argument %q: -help lists the flags", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second ^C ends the program at once
	if err := run(ctx, s, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// maxConns is how many connections there may be at a time, including terminals and connections to
// boxes.
const maxConns = 1000

// run serves until ctx ends.
func run(ctx context.Context, s settings, out io.Writer) (err error) {
	secret, err := secretIn(s.state)
	if err != nil {
		return err
	}
	specs, err := s.store()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	listener = netutil.LimitListener(listener, maxConns)
	defer listener.Close()
	address := listener.Addr().(*net.TCPAddr)
	boxes := &url.URL{Scheme: "http", Host: fmt.Sprintf("boxes.localhost:%d", address.Port)}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	svc, err := service.New(service.Config{Place: s.place(), Specs: specs, Secret: secret,
		Name: s.name, URL: service.URLs(boxes), Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()

	// The token depends only on the secret. So a browser stays logged in when the program is
	// started again.
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("the page's token"))
	token := base64.RawURLEncoding.EncodeToString(mac.Sum(nil))

	app := &app{service: svc}
	serving, end := context.WithCancel(ctx)
	defer end()
	server := &http.Server{
		Handler: service.Proxy(svc, service.ProxyConfig{URL: boxes,
			Next: app.handler(token, logger), Logger: logger}),
		// The end of serving ends all requests. Terminals and events would go on for ever.
		BaseContext:       func(net.Listener) context.Context { return serving },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(out, "Open http://%s/#token=%s\n", address, token)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	end()
	app.requests.Wait()
	stopping, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(stopping))
}

// place returns the place of the boxes: Docker or Kubernetes.
func (s settings) place() place.Place {
	if s.kube {
		return pods.New(kubebox.Config{})
	}
	return containers.New(containers.Config{})
}

// store returns the specs in the directory or, without one, a spec of the image.
func (s settings) store() (service.Specs, error) {
	if s.specs != "" {
		return service.OpenSpecs(s.specs)
	}
	spec := &service.Spec{
		ID:        "default",
		Config:    sshbox.Config{Image: s.image, Memory: 1 << 30},
		Ports:     []service.Port{{Name: "web", Port: 8000}},
		Lifecycle: service.DefaultLifecycle,
	}
	if s.kube {
		spec.Lifecycle = service.Lifecycle{} // pods cannot be paused
	}
	return service.NewSpecs(spec)
}

// secretIn returns the secret in a directory. The first time, it makes one.
func secretIn(dir string) ([]byte, error) {
	if dir == "" {
		config, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("%w: give -state directory", err)
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
