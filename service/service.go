package service

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/containers"
	"github.com/sandshell/sandshell/service/place"
)

// A Config says how a Service works. Specs and Secret must be set.
type Config struct {
	// Place holds the boxes. The service closes it. Default: containers.New(containers.Config{}).
	Place place.Place
	// Specs are the kinds of boxes. NewSpecs and OpenSpecs return some.
	Specs Specs
	// Secret is what session keys are made with: at least 32 random bytes, the same in all
	// processes of the service. If it changes, all session keys change.
	Secret []byte
	// Logger logs what the service does in the background. Default: nothing is logged.
	Logger *slog.Logger
	// Name tells the service's boxes from those of other services in the same Place. It has at most
	// 20 lower-case letters and digits. Default: "default".
	Name string
	// URL returns the address of a port of a running box, for Info.URLs; see URLs. If it panics,
	// the call that asks for the box returns an error. If it is nil, Info.URLs is empty.
	URL func(id string, port Port) string
	// Every is how often the service applies the Lifecycles, fills the pools, removes what killed
	// processes have left, and serves the ways out that they have served. Default: 15 s.
	Every time.Duration
	// Egress changes what the gate of a box is made of, before this process serves the box's way
	// out: it may add secrets, limits, a log, a cache. Allow has the box's rules already. box has
	// what Start was given and the box's rules. It is called for each box that has a Spec.Egress
	// and that this process connects to, from several goroutines. It must not change the box. If it
	// fails or panics, Start fails, and the way out of a box that exists is not served until a
	// later call succeeds. Default: the rules alone.
	Egress func(box *Info, c *egress.Config) error
}

// A Service manages boxes. Its methods may be called concurrently.
type Service struct {
	name   string
	place  place.Place
	store  Specs
	secret []byte
	log    *slog.Logger
	url    func(id string, port Port) string
	every  time.Duration
	egress func(box *Info, c *egress.Config) error
	turns  turns           // by id
	known  known           // for the proxy
	ctx    context.Context // ends when the service closes
	cancel context.CancelFunc
	close  func() error   // calls closeOnce once
	tasks  sync.WaitGroup // calls, and what runs in the background

	ends ends // the timers of the boxes whose ends this process has set

	servesExits atomic.Bool // serveExits is at it

	mu          sync.Mutex
	closed      bool
	connections map[string]*connection // by id: the boxes that this process is connected to
	requests    map[string]*requests   // by id
	firstSeen   map[string]time.Time   // by handle: when a box that is being started was first seen
	pools       map[string]*pool       // by spec

	exitFailures map[string]string // by handle: what logExit has logged
}

var validName = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

const (
	defaultEvery = 15 * time.Second
	minSecret    = 32
)

// New returns a service. It does not wait for the engine. Boxes of the same Name that already exist
// are boxes of the service.
func New(c Config) (*Service, error) {
	if c.Name == "" {
		c.Name = "default"
	}
	if c.Place == nil {
		c.Place = containers.New(containers.Config{})
	}
	c.Logger = guard.Logger(c.Logger)
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	if err := c.Place.Open(c.Name, c.Logger); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{
		name: c.Name, place: c.Place, store: c.Specs, secret: bytes.Clone(c.Secret), log: c.Logger,
		url: c.URL, every: c.Every, egress: c.Egress, ctx: ctx, cancel: cancel,
		turns: turns{byID: map[string]*turn{}}, connections: map[string]*connection{},
		requests: map[string]*requests{}, firstSeen: map[string]time.Time{},
		pools: map[string]*pool{}, exitFailures: map[string]string{},
	}
	s.close = sync.OnceValue(s.closeOnce)
	s.tasks.Go(func() { s.runRounds(ctx) })
	return s, nil
}

func (c *Config) check() error {
	switch {
	case !validName.MatchString(c.Name):
		return invalid("Config.Name", "%q: write lower-case letters and digits, at most 20", c.Name)
	case c.Specs == nil:
		return invalid("Config.Specs", "it is nil: use NewSpecs or OpenSpecs")
	case len(c.Secret) < minSecret:
		return invalid("Config.Secret", "it has %d bytes: give at least %d random bytes",
			len(c.Secret), minSecret)
	case c.Every < 0:
		return invalid("Config.Every", "%v is negative: 0 means the default", c.Every)
	}
	return nil
}

// Specs returns the store of specs.
func (s *Service) Specs() Specs { return s.store }

// Close disconnects from all boxes, which go on, and removes the boxes that were only kept ready.
// Until another process serves the way out of a box (see Spec.Egress), its programs reach nothing.
// It ends the calls under way and waits for them and for the background work. These calls, and
// later ones, return sandbox.ErrClosed. Closing again does nothing.
func (s *Service) Close() error { return s.close() }

func (s *Service) closeOnce() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
	s.ends.close()
	s.mu.Lock()
	boxes, pools := s.connections, s.pools
	s.connections, s.pools = map[string]*connection{}, map[string]*pool{}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, h := range boxes {
		all.Go(h.release)
	}
	for _, p := range pools {
		all.Go(p.close)
	}
	all.Wait()
	return s.place.Close()
}

// begin begins a call. The context that it returns ends with ctx, and when the service closes. At
// the end of the call, the caller calls done with the call's error. If the service was closed
// during the call, done sets the error to sandbox.ErrClosed.
func (s *Service) begin(ctx context.Context) (_ context.Context, done func(*error), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, fmt.Errorf("service: %w", sandbox.ErrClosed)
	}
	s.tasks.Add(1)
	its, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return its, func(err *error) {
		if *err != nil && its.Err() != nil && ctx.Err() == nil {
			*err = fmt.Errorf("service: %w", sandbox.ErrClosed)
		}
		stop()
		cancel()
		s.tasks.Done()
	}, nil
}
