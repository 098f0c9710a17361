package egress

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// What a sandbox may have besides sandbox.Sandbox: see package plugin.
type (
	environment interface{ AddEnv(kv ...string) }
	forgetful   interface{ RemoveEnv(kv ...string) }
	confined    interface{ PluginDir() (string, error) }
)

// proxyPort is where the proxy of an isolated box is. It is always the same, so that it is right
// in shells of an earlier program.
const proxyPort = "3128"

// closeTime bounds each step of Exit.Close in the box.
const closeTime = 10 * time.Second

// A settlement is what an Exit has put into its box.
type settlement struct {
	box      sandbox.Sandbox
	listener net.Listener
	outward  net.Listener // nil if the box has none
	served   chan struct{}
	dir      string
	env      []string // that AddEnv got
	isolated bool
	system   system
}

// Attach makes a box's way out: a proxy on the box's loopback, which this program serves. The
// variables that programs find the proxy and its certificates by are set in all sessions, except
// those with an unfinished command, and in every session, job and Run that is started later. If the
// box is a container and its user may write them, the system's own certificates, those of its Java
// and Chromium, and the settings of apt are changed too, for programs without the variables. Close
// of the Exit undoes all this.
//
// The rules bind the box only if the proxy is its only way out. If the box has routes to anywhere
// else, the error is an *OpenNetworkError, unless Config.Advisory. The box itself is asked for its
// routes, so make the box without a network and do not take its word.
//
// If the main session has an unfinished command, the error is sandbox.ErrBusy. ctx governs the
// call. The Exit lives until its Close, the Gate's, or the box's.
func (g *Gate) Attach(ctx context.Context, box sandbox.Sandbox) (*Exit, error) {
	if box == nil {
		return nil, errors.New("egress: attach: the sandbox is nil: make a box first")
	}
	x, err := g.attach(ctx, box)
	if err != nil {
		return nil, fmt.Errorf("egress: attach to %s: %w", box, err)
	}
	return x, nil
}

func (g *Gate) attach(ctx context.Context, box sandbox.Sandbox) (_ *Exit, err error) {
	in, err := inspect(ctx, box)
	if err != nil {
		return nil, err
	}
	s := &settlement{box: box, dir: in.dir, isolated: len(in.routes) == 0,
		served: make(chan struct{})}
	close(s.served)
	token := ""
	if kind := box.String(); !s.isolated || kind == "LocalBox" || kind == "SSHBox" {
		token = rand.Text() // others may share the loopback
	}
	var x *Exit
	defer func() {
		if err == nil {
			return
		}
		if x == nil {
			err = errors.Join(err, s.undo())
		} else {
			err = errors.Join(err, x.Close())
		}
	}()
	if !s.isolated && !g.config.Advisory {
		return nil, &OpenNetworkError{Box: box.String(), Routes: in.routes}
	}
	if s.listener, err = listen(ctx, box, token == ""); err != nil {
		return nil, err
	}
	if s.outward, err = listenOutward(ctx, box); errors.Is(err, syscall.EADDRINUSE) {
		return nil, errors.New("another Exit serves the box's connections: close that first")
	} else if err != nil {
		return nil, err
	}
	if x, err = g.newExit(box.String(), token); err != nil {
		return nil, err
	}
	s.served = make(chan struct{})
	x.settled = s
	go func() {
		defer close(s.served)
		var outward sync.WaitGroup
		if s.outward != nil {
			outward.Go(func() { x.serveOutward(s.outward) })
		}
		_ = x.serve(s.listener)
		x.shut() // the box may be gone
		outward.Wait()
	}()
	address := s.listener.Addr().String()
	if token == "" {
		if err := x.changeSystem(ctx, s, address); err != nil {
			return nil, err
		}
	}
	files, env := x.files(in, address, s.system.java)
	if err := writeFiles(ctx, box, s.dir, files); err != nil {
		return nil, err
	}
	if err := source(ctx, box, path.Join(s.dir, "env")); err != nil {
		return nil, fmt.Errorf("set variables in the main session: %w", err)
	}
	if b, ok := sandbox.As[environment](box); ok {
		b.AddEnv(env...)
	}
	s.env = env
	s.others(ctx, "env")
	if err := g.add(x); err != nil {
		return nil, err
	}
	return x, nil
}

// listen listens on the box's loopback. If the port matters to nobody, it is a free one.
func listen(ctx context.Context, box sandbox.Sandbox, fixed bool) (net.Listener, error) {
	if fixed {
		l, err := box.Listen(ctx, "tcp", "127.0.0.1:"+proxyPort)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return box.Listen(ctx, "tcp", "127.0.0.1:0")
}

func writeFiles(ctx context.Context, box sandbox.Sandbox, dir string, files []file) error {
	errs := make([]error, len(files))
	var wait sync.WaitGroup
	for i, f := range files {
		wait.Go(func() {
			errs[i] = box.Files().WriteFile(ctx, path.Join(dir, f.name), f.data, f.perm)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// others reads a file of the Exit's directory into the shells of all sessions but the main one,
// side by side. A session that is at work stays as it is.
func (s *settlement) others(ctx context.Context, file string) {
	main := s.box.ID()
	var wait sync.WaitGroup
	for _, other := range s.box.Sessions() {
		if other.ID() != main {
			wait.Go(func() { _ = source(ctx, other, path.Join(s.dir, file)) })
		}
	}
	wait.Wait()
}

// source reads a file into a session's shell.
func source(ctx context.Context, session sandbox.Session, file string) error {
	res, err := session.Execute(ctx, ". "+shellquote.Quote(file), sandbox.Timeout(time.Minute))
	if err == nil && (res.State != sandbox.Exited || res.ExitCode != 0) {
		err = fmt.Errorf("exit status %d: %s", res.ExitCode, lastlines.Of(res.Output))
	}
	return err
}

// inspectScript makes the directory of name $1, in $2 if that is given, and prints, each followed
// by a zero byte: the directory, the routes of IPv4 and of IPv6, the box's root certificates, and
// those of the variables $3 and on that are set, as NAME=value.
const inspectScript = `
n=$1 only=$2 d=
shift 2
for b in ${only:+"$only"} ${only:-/tmp /var/tmp /dev/shm "$HOME" "$PWD"}; do
  if (umask 022; mkdir "$b/$n") 2>/dev/null; then d=$b/$n; break; fi
done
printf '%s\0' "$d"
for f in route ipv6_route; do
  if [ -r /proc/net/route ]; then [ ! -r /proc/net/$f ] || head -n 50 /proc/net/$f; else echo ?; fi
  printf '\0'
done
for f in "$SSL_CERT_FILE" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
  /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
  if [ -f "$f" ] && [ -r "$f" ]; then cat "$f"; break; fi
done
printf '\0'
for v do
  eval "[ -z \"\${$v+x}\" ] || printf '%s=%s\0' $v \"\$$v\""
done
`

// inspectMax is the most that the script may print: some hundred certificates and variables.
const inspectMax = 8 << 20

// An inspection is what a box says about itself.
type inspection struct {
	dir    string
	routes []string // to anywhere but itself
	roots  []byte   // PEM
	env    []string // those of our variables that are set
}

func inspect(ctx context.Context, box sandbox.Sandbox) (*inspection, error) {
	only := ""
	if b, ok := sandbox.As[confined](box); ok {
		var err error
		if only, err = b.PluginDir(); err != nil {
			return nil, err
		}
	}
	name := tempname.New()
	out, err := run(ctx, box, inspectScript, slices.Concat([]string{name, only},
		variableNames())...)
	if err != nil {
		return nil, fmt.Errorf("look at the box: %w", err)
	}
	f := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if len(f) < 4 {
		return nil, fmt.Errorf("look at the box: its sh prints only %.100q", out)
	}
	if !path.IsAbs(f[0]) || path.Base(f[0]) != name { // Close removes it
		return nil, errors.New("no directory of the box can be written: mount a tmpfs on /tmp")
	}
	in := &inspection{dir: f[0], routes: append(routes4(f[1]), routes6(f[2])...), env: f[4:]}
	for rest := []byte(f[3]); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return in, nil
		}
		if block.Type == "CERTIFICATE" {
			in.roots = append(in.roots, pem.EncodeToMemory(&pem.Block{Type: block.Type,
				Bytes: block.Bytes})...)
		}
	}
}

// run runs one of this package's scripts in the box, and returns what it prints.
func run(ctx context.Context, box sandbox.Sandbox, script string, args ...string) (string, error) {
	ctx, out, stop := bounded.Capture(ctx, "what the box's sh prints", inspectMax)
	defer stop()
	var errs lastlines.Writer
	code, err := box.Run(ctx, &sandbox.Cmd{Args: append([]string{"sh", "-c", script, "sh"},
		args...), Stdout: out, Stderr: &errs})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d: %s", code, errs.String())
	}
	return out.String(), err
}

// Isolated reports whether the exit was the box's only way out when it was attached.
func (x *Exit) Isolated() bool { return x.settled != nil && x.settled.isolated }

// Close ends the way out: requests under way end, and what Attach has set in the box is undone. A
// variable that has another value by now is left alone, and so is what others have changed in
// files. A session with an unfinished command keeps the variables. If the main session does, the
// error wraps sandbox.ErrBusy. Closing again does nothing.
func (x *Exit) Close() error {
	x.close.Do(func() {
		s := x.settled
		if s == nil {
			x.shut()
			return
		}
		s.closeListeners()
		x.shut()
		x.closeErr = s.undo()
	})
	return x.closeErr
}

func (s *settlement) closeListeners() {
	for _, l := range []net.Listener{s.listener, s.outward} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// undo removes from the box what Attach has put there. A box that is closed or lost has nothing.
func (s *settlement) undo() error {
	s.closeListeners()
	<-s.served
	var errs []error
	step := func(f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := f(ctx); err != nil && !errors.Is(err, sandbox.ErrClosed) &&
			!errors.Is(err, sandbox.ErrLost) {
			errs = append(errs, err)
		}
	}
	if b, ok := sandbox.As[forgetful](s.box); ok {
		b.RemoveEnv(s.env...)
	}
	if s.env != nil {
		step(func(ctx context.Context) error {
			s.others(ctx, "undo")
			return source(ctx, s.box, path.Join(s.dir, "undo"))
		})
	}
	step(func(ctx context.Context) error { return s.system.restore(ctx, s.box.Files()) })
	step(func(ctx context.Context) error {
		_, err := run(ctx, s.box, `rm -rf "$1"`, s.dir)
		return err
	})
	if len(errs) > 0 {
		return fmt.Errorf("egress: detach from %s: %w", s.box, errors.Join(errs...))
	}
	return nil
}
