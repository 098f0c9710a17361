//go:build linux

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/outward"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/procfs"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

type options struct {
	id      string
	command []string // the image's own entrypoint and command; empty if it is not to run
	linger  time.Duration
	keep    bool
	outward bool
	dir     string // the box's own on a machine; "" in a container
}

// A server is a box: its programs, and the connections to it.
type server struct {
	options
	log      *slog.Logger
	stderr   *stderr // nil in tests
	started  time.Time
	children *children
	threads  threads
	memory   *procfs.OOMCounter // nil if nothing counts
	main     *child             // the image's command; nil if it does not run
	outside  *outward.Outward   // nil unless options.outward is set
	refusals atomic.Int64       // connections that were refused

	marking  sync.Mutex // held while noteMark writes a mark
	starting sync.Mutex // held while a program is looked up and started
	renewing sync.Mutex // held while the box gets another identity

	keeps       atomic.Bool // options.keep
	mu          sync.Mutex  // guards options.id and linger too
	env         []string    // of the programs
	former      []string    // env of the box that this one is a copy of
	hostKey     ssh.Signer
	listener    *net.UnixListener    // the box's socket
	owners      map[string]*owner    // by key, in SSH's wire format
	guests      map[string]bool      // the guests' keys
	conns       map[*conn]struct{}   // those that have logged in
	pending     []net.Conn           // those that have not, the oldest first
	programs    map[string]*program  // by id
	arrivals    int                  // how many owners have come
	numbers     map[string]int       // the greatest number of each kind of name that was used
	listeners   map[string]*listener // by id
	connAdded   broadcast.Signal     // sent when a connection has logged in
	lingerTimer *time.Timer          // fires when the owner has been away for too long
	marks       map[string]bool      // noted by noteMark
	stopping    bool                 // all logins are refused
}

func newServer(o options, log *slog.Logger) (*server, error) {
	hostKey, err := newHostKey()
	if err != nil {
		return nil, err
	}
	env := environment(os.Environ())
	if o.dir != "" {
		env = loginEnvironment(os.Environ())
	}
	s := &server{
		options: o, log: log, started: time.Now(), hostKey: hostKey,
		children: newChildren(), env: env,
		owners: map[string]*owner{}, guests: map[string]bool{}, conns: map[*conn]struct{}{},
		programs: map[string]*program{}, numbers: map[string]int{},
		listeners: map[string]*listener{}, marks: map[string]bool{},
	}
	s.keeps.Store(o.keep)
	return s, nil
}

// serve runs the box. It returns only if the box cannot start.
func serve(o options) error {
	runtime.GOMAXPROCS(1)
	stderr, err := openStderr()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr.log, nil))
	if o.outward {
		reserve(reservedThreads + outwardThreads)
	} else {
		reserve(reservedThreads)
	}
	if o.dir == "" {
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	var score *oomScore
	// On a machine, the kernel may also choose programs of other users, and none of them should be
	// killed first.
	if o.dir == "" {
		var err error
		if score, err = openOOMScore(); err != nil {
			log.Info("if memory runs out, the kernel may kill boxd before the programs", "error",
				err)
		}
	}
	// boxd's memory holds the keys, and what programs print. Other processes of the same user must
	// not read it.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // for the case that it is not process 1
	// Programs must not inherit descriptors that the engine may have left open.
	unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	s, err := newServer(o, log)
	if err != nil {
		return err
	}
	s.children.score, s.stderr = score, stderr
	if err := s.startOutward(); err != nil {
		return err
	}
	listener, err := s.listen()
	if err != nil {
		return err
	}
	// A Go program ends if it writes to a standard stream that nobody reads, for example when the
	// engine has lost the log. Handling SIGPIPE prevents that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	s.openMemory()
	go s.children.reap()
	if s.dir == "" {
		go s.readClaims(os.Stdin, os.Stdout)
	}
	if len(o.command) > 0 {
		if err := s.startCommand(); err != nil {
			return fmt.Errorf("start the image's command: %w", err)
		}
	}
	s.mu.Lock()
	// The first owner may take longer to connect.
	s.lingerTimer = time.AfterFunc(o.linger+30*time.Second, s.lingerEnded)
	if o.keep {
		s.lingerTimer.Stop()
	}
	s.mu.Unlock()
	go s.handleSignals()
	s.listener = listener
	go s.accept(listener)
	select {}
}

// accept serves the connections to a socket until the socket is closed.
func (s *server) accept(listener *net.UnixListener) {
	for {
		c, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors, for example
			s.log.Error("accept", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		go s.serveJoin(c)
	}
}

// reservedThreads is how many threads boxd has from the start. At no time are more in blocking
// calls.
const reservedThreads = 16

// reserve makes Go's runtime create that many threads, which it keeps. If the kernel refuses a new
// thread later, the runtime ends the program: programs of the box may use up the container's number
// of threads (Config.PIDs).
func reserve(threads int) {
	var made sync.WaitGroup
	enough := make(chan struct{})
	for range threads {
		made.Add(1)
		go func() {
			runtime.LockOSThread() // no other goroutine runs on this thread
			defer runtime.UnlockOSThread()
			made.Done()
			<-enough
		}()
	}
	made.Wait()
	close(enough)
}

// Threads sets how many of boxd's threads run Go code at a time. Normally it is one: boxd passes
// small pieces of data from one goroutine to the next. If that wakes no second thread, it takes
// half the processor time, and a command is a fifth faster. While copies are under way, which have
// work for two threads, it is two.
type threads struct {
	mu   sync.Mutex
	busy int
}

// addCopies adds n to the number of copies under way.
func (t *threads) addCopies(n int) {
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

// lingerEnded ends the box: as boxd is process 1, the kernel ends all other processes with it. If
// the box is kept, it closes the listeners instead, whose connections wait for the owner.
func (s *server) lingerEnded() {
	if s.keeps.Load() {
		s.unlisten(func(*listener) bool { return true })
		return
	}
	s.log.Info("the owner has not connected for too long: the box ends")
	s.exit()
}

// exit ends the box and all that runs in it. In a container, the kernel ends all with process 1.
func (s *server) exit() {
	if s.dir != "" {
		s.destroy()
	}
	os.Exit(0)
}

// listen opens the box's socket. On a machine, start has opened it.
func (s *server) listen() (*net.UnixListener, error) {
	if s.dir != "" {
		return s.inheritedListener()
	}
	return net.ListenUnix("unix", &net.UnixAddr{Name: wire.SocketName(s.id), Net: "unix"})
}

// stopLimit is how long programs may take to end when the box is stopped. It is less than the 10 s
// after which docker stop kills.
const stopLimit = 8 * time.Second

// handleSignals stops the box on SIGTERM or SIGINT, and passes all other signals on to the image's
// command.
func (s *server) handleSignals() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals) // all of them: at kill -SEGV 1, Go's runtime would end the box
	stopping := false
	for sig := range signals {
		switch sig {
		case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE:
			// sent to boxd by the kernel and Go's runtime
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

// stop ends the box. It asks all programs to end; those that have not ended within stopLimit are
// killed with the box. It closes the connections first. So no client takes the end of the box for
// the result of its own command, or starts another command in what is left of the box.
func (s *server) stop() {
	s.mu.Lock()
	s.stopping = true
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	s.children.each(func(pid int) {
		// interactive shells ignore SIGTERM
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGCONT} {
			syscall.Kill(-pid, sig)
		}
	})
	time.AfterFunc(stopLimit, s.exit)
	s.children.wait()
	s.exit()
}

// startCommand starts the image's own entrypoint and command on the container's standard outputs.
// Its input is empty, because the container's standard input is for claims. When the command ends,
// the box continues.
func (s *server) startCommand() error {
	p, err := s.prepare(request{args: s.command})
	if err != nil {
		return err
	}
	p.dir = "" // the container's own, even if that is the root
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	child, err := s.children.start(p, [3]*os.File{null, os.Stdout, os.Stderr}, false)
	if err != nil {
		return err
	}
	s.main = child
	go func() {
		<-child.ended
		s.log.Info("the image's command has ended", "status", child.status.ExitStatus(), "signal",
			child.status.Signal())
	}()
	return nil
}
