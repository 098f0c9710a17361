package egress

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/internal/shellquote"
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
	keyed    bool // Detach leaves all this in the box
	adopted  bool // it was there
	system   system
	found    *inspection
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
// call. The Exit lives until its Close, the Gate's, or the box's. With the option Authority,
// another Exit can follow it.
func (g *Gate) Attach(ctx context.Context, box sandbox.Sandbox,
	options ...AttachOption) (*Exit, error) {
	if box == nil {
		return nil, errors.New("egress: attach: the sandbox is nil: make a box first")
	}
	var o attachOptions
	for _, option := range options {
		option(&o)
	}
	if o.err != nil {
		return nil, fmt.Errorf("egress: attach: %w", o.err)
	}
	x, err := g.attach(ctx, box, o)
	if err != nil {
		return nil, fmt.Errorf("egress: attach to %s: %w", box, err)
	}
	return x, nil
}

func (g *Gate) attach(ctx context.Context, box sandbox.Sandbox, o attachOptions) (_ *Exit,
	err error) {
	s := &settlement{box: box, keyed: o.key != nil, served: make(chan struct{})}
	close(s.served)
	var x *Exit
	defer func() {
		switch {
		case err == nil:
		case x == nil:
			err = errors.Join(err, s.leave())
		case s.adopted:
			err = errors.Join(err, x.Detach())
		default:
			err = errors.Join(err, x.Close())
		}
	}()
	if s.keyed {
		if err := s.claim(ctx); err != nil {
			return nil, err
		}
	}
	before := o.prepared.of(box, o.key)
	in := before.inspection()
	if in == nil {
		if in, err = inspect(ctx, box, o.key, g.variables()); err != nil {
			return nil, err
		}
	}
	s.found, s.dir, s.adopted, s.isolated = in, in.dir, in.adopted, len(in.routes) == 0
	s.system.dirs = in.dirs
	token := ""
	if !s.isolated && box.String() != "KubeBox" || sharesLoopback(box) {
		token = rand.Text() // others may share the loopback
	}
	if !s.isolated && !g.config.Advisory {
		return nil, &OpenNetworkError{Box: box.String(), Routes: in.routes}
	}
	if s.keyed && token != "" {
		return nil, errAlone
	}
	if !s.keyed {
		if err := s.listen(ctx, token == ""); err != nil {
			return nil, err
		}
	}
	if x, err = g.newExit(box.String(), token, o.key); err != nil {
		return nil, err
	}
	s.served = make(chan struct{})
	x.settled = s
	go x.serveBox(s)
	if err := x.settle(ctx, before); err != nil {
		return nil, err
	}
	if err := g.add(x); err != nil {
		return nil, err
	}
	return x, nil
}

// settle puts into the box what programs need. before is what was done by Prepared; it may be nil.
func (x *Exit) settle(ctx context.Context, before *settlement) error {
	s := x.settled
	address := s.listener.Addr().String()
	if before != nil {
		s.system = before.system
	} else if x.token == "" {
		if err := x.changeSystem(ctx, s, address); err != nil {
			return err
		}
	}
	files, env := x.files(s.found, address, s.system)
	current := s.adopted && s.found.has(env) // the sessions have them, or have changed them since
	if before == nil || !current {
		if err := writeFiles(ctx, s.box, s.dir, files); err != nil {
			return err
		}
	}
	if current {
		s.env = env
		return nil
	}
	return s.setVariables(ctx, env)
}

// listen makes the listeners of an Exit without a key. If the port matters to nobody, it is a free
// one.
func (s *settlement) listen(ctx context.Context, fixed bool) (err error) {
	if fixed {
		s.listener, err = s.box.Listen(ctx, "tcp", "127.0.0.1:"+proxyPort)
	}
	if !fixed || errors.Is(err, syscall.EADDRINUSE) {
		s.listener, err = s.box.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return err
	}
	s.outward, err = listenOutward(ctx, s.box)
	if errors.Is(err, syscall.EADDRINUSE) {
		return errors.New("another Exit serves the box's connections: close that first")
	}
	return err
}

// serveBox serves the listeners until one of them ends.
func (x *Exit) serveBox(s *settlement) {
	defer close(s.served)
	var outward sync.WaitGroup
	if s.outward != nil {
		outward.Go(func() {
			x.serveOutward(s.outward)
			_ = s.listener.Close()
		})
	}
	_ = x.serve(s.listener)
	x.shut() // the box may be gone
	s.closeListeners()
	outward.Wait()
}

// setVariables sets the variables in all sessions that are not at work, and for what is started
// later.
func (s *settlement) setVariables(ctx context.Context, env []string) error {
	err := source(ctx, s.box, path.Join(s.dir, "env"))
	if err != nil && !(s.adopted && errors.Is(err, sandbox.ErrBusy)) {
		return fmt.Errorf("set variables in the main session: %w", err)
	}
	if b, ok := sandbox.As[environment](s.box); ok {
		b.AddEnv(env...)
	}
	s.env = env
	s.others(ctx, "env")
	return nil
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

// leave ends an Attach that has failed before there was an Exit.
func (s *settlement) leave() error {
	if s.dir == "" || s.adopted {
		s.closeListeners()
		return nil
	}
	return s.undo()
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
