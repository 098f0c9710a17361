//go:build linux

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/sshbox/internal/wire"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

type options struct {
	id      string
	command []string // the image's own
	linger  time.Duration
	keep    bool
}

// A server is a box.
type server struct {
	options
	log      *slog.Logger
	env      []string // of what it starts
	hostKey  ssh.Signer
	children *children
	threads  threads
	main     *child       // the image's command; nil if it does not run
	refusals atomic.Int64 // connections that were refused

	starting sync.Mutex // held while a program is looked for, and started

	mu       sync.Mutex
	owner    string              // the key that may do everything, in SSH's wire format; "" until there is one
	guests   map[string]bool     // keys that may log in
	conns    map[*conn]struct{}  // logged in
	callers  []net.Conn          // not logged in, the oldest first
	programs map[string]*program // by id
	alone    *time.Timer         // fires when no owner has been there for long
}

func newServer(o options, log *slog.Logger) (*server, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	hostKey, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	return &server{
		options: o, log: log, hostKey: hostKey, children: newChildren(), env: environment(os.Environ()),
		guests: map[string]bool{}, conns: map[*conn]struct{}{}, programs: map[string]*program{},
	}, nil
}

// serve is the box's life.
func serve(o options, log *slog.Logger) error {
	runtime.GOMAXPROCS(1)
	// Neither the keys nor what the programs print is for other processes of the same user to read.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)    // where it is not process 1
	unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) // what the engine may have left open is not for the programs
	s, err := newServer(o, log)
	if err != nil {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: wire.SocketName(o.id), Net: "unix"})
	if err != nil {
		return err
	}
	// A write to a standard stream that nobody reads any more, as when the engine has lost the log, would else end a Go program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go s.children.reap()
	if len(o.command) > 0 {
		if err := s.startCommand(); err != nil {
			return fmt.Errorf("start the image's command: %w", err)
		}
	}
	s.mu.Lock()
	s.alone = time.AfterFunc(o.linger+30*time.Second, s.abandoned) // the first owner may be slow to come
	if o.keep {
		s.alone.Stop()
	}
	s.mu.Unlock()
	go s.obey()
	for {
		c, err := listener.AcceptUnix()
		if err != nil { // out of descriptors, for example
			log.Error("accept", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		go s.called(c)
	}
}

// A threads counts who has much to do at once. boxd mostly hands small pieces from one goroutine to the next, and with one scheduler thread that
// takes half the processor time, since no other is to be woken each time: a command is a fifth faster. A copy, which has work for two, gets two.
type threads struct {
	mu   sync.Mutex
	busy int
}

func (t *threads) more(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.busy > 0
	if t.busy += n; before != (t.busy > 0) {
		if before {
			runtime.GOMAXPROCS(1)
		} else {
			runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
		}
	}
}

// abandoned ends the box, and with process 1 all others.
func (s *server) abandoned() {
	s.log.Info("nobody has come for long: the box ends")
	os.Exit(0)
}

// stopLimit is how long programs have to end when the box is stopped: docker stop kills after 10 s.
const stopLimit = 8 * time.Second

// obey ends the box when it is told to stop, and passes all other signals on to the image's command.
func (s *server) obey() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals) // all: Go's runtime would end the box at kill -SEGV 1, and at others for which it has a handler
	stopping := false
	for sig := range signals {
		switch sig {
		case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE: // for the server itself
		case syscall.SIGTERM, syscall.SIGINT:
			if !stopping {
				stopping = true
				s.log.Info("stopping", "signal", sig)
				go s.stop()
			}
		default:
			if s.main != nil {
				s.children.signal(s.main, sig.(syscall.Signal))
			}
		}
	}
}

// stop ends all that was started here, softly at first, and the box.
func (s *server) stop() {
	s.children.each(func(pid int) {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGCONT} { // interactive shells ignore SIGTERM
			syscall.Kill(-pid, sig)
		}
	})
	time.AfterFunc(stopLimit, func() { os.Exit(0) }) // process 1: the kernel ends the others
	s.children.wait()
	os.Exit(0)
}

// startCommand starts the image's own entrypoint and command, with the container's standard streams. The box does not end with it.
func (s *server) startCommand() error {
	p, err := s.prepare(s.command, "", nil)
	if err != nil {
		return err
	}
	p.dir = "" // the container's own, also where that is the root
	child, err := s.children.start(p, [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, false)
	if err != nil {
		return err
	}
	s.main = child
	go func() {
		<-child.ended
		s.log.Info("the image's command has ended", "status", child.status.ExitStatus(), "signal", child.status.Signal())
	}()
	return nil
}
