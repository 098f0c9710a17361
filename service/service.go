package service

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// A Config says how a Service works. Specs and Secret must be set.
type Config struct {
	// Place holds the boxes. The service closes it. Default: Docker(nil).
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
	// Every is how often the service pauses and deletes the boxes for which that is due, and
	// removes what killed processes have left. Default: 15 s.
	Every time.Duration
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
	turns  turns           // by id
	ctx    context.Context // ends when the service closes
	cancel context.CancelFunc
	close  func() error   // calls closeOnce once
	tasks  sync.WaitGroup // calls, and what runs in the background

	mu     sync.Mutex
	closed bool
	held   map[string]*held     // by id: the boxes that this process is connected to
	used   map[string]*use      // by id
	seen   map[string]time.Time // by handle: when a box that is being started was first seen
	pools  map[string]*pool     // by spec
}

var (
	validName = regexp.MustCompile(`^[a-z0-9]{1,20}$`)
	validID   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

const (
	defaultEvery = 15 * time.Second
	minSecret    = 32
)

// New returns a service. It finds the boxes that exist already. It does not wait for the engine.
func New(o Config) (*Service, error) {
	if o.Name == "" {
		o.Name = "default"
	}
	if o.Place == nil {
		o.Place = Docker(nil)
	}
	o.Logger = guard.Logger(o.Logger)
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	if err := o.Place.Open(o.Name, o.Logger); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{
		name: o.Name, place: o.Place, store: o.Specs, secret: bytes.Clone(o.Secret), log: o.Logger,
		url: o.URL, every: o.Every, ctx: ctx, cancel: cancel, turns: turns{of: map[string]*turn{}},
		held: map[string]*held{}, used: map[string]*use{}, seen: map[string]time.Time{},
		pools: map[string]*pool{},
	}
	s.close = sync.OnceValue(s.closeOnce)
	s.tasks.Go(func() { s.attend(ctx) })
	return s, nil
}

func (o *Config) check() error {
	switch {
	case !validName.MatchString(o.Name):
		return invalid("Config.Name", "%q: write lower-case letters and digits, at most 20", o.Name)
	case o.Specs == nil:
		return invalid("Config.Specs", "it is nil: NewSpecs makes a store")
	case len(o.Secret) < minSecret:
		return invalid("Config.Secret", "it has %d bytes: give at least %d random bytes",
			len(o.Secret), minSecret)
	case o.Every < 0:
		return invalid("Config.Every", "%v is negative: 0 means the default", o.Every)
	}
	return nil
}

// Specs returns the store of specs.
func (s *Service) Specs() Specs { return s.store }

// Close disconnects from all boxes, which go on, and removes the boxes that were only kept ready.
// It ends the calls under way and waits for them and for the background work. These calls, and
// later ones, return sandbox.ErrClosed. Closing again does nothing.
func (s *Service) Close() error { return s.close() }

func (s *Service) closeOnce() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
	s.mu.Lock()
	boxes, pools := s.held, s.pools
	s.held, s.pools = map[string]*held{}, map[string]*pool{}
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

// begin begins a call. The context that it returns ends with ctx, and when the service closes. The
// caller calls done at the call's end, with the call's error.
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

// turns makes the calls about one box wait for each other.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	free    chan struct{} // holds a token while nobody has the turn
	waiting int
}

// enter adds a goroutine to those that want the turn.
func (t *turns) enter(id string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.of[id]
	if mine == nil {
		mine = &turn{free: make(chan struct{}, 1)}
		mine.free <- struct{}{}
		t.of[id] = mine
	}
	mine.waiting++
	return mine
}

// leave removes a goroutine from those that want the turn. had says whether it had it.
func (t *turns) leave(id string, had bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.of[id]
	if had {
		mine.free <- struct{}{}
	}
	if mine.waiting--; mine.waiting == 0 {
		delete(t.of, id)
	}
}

// take waits for the turn of an id. The caller calls what it returns at the end of the turn.
func (t *turns) take(ctx context.Context, id string) (func(), error) {
	select {
	case <-t.enter(id).free:
		return func() { t.leave(id, true) }, nil
	case <-ctx.Done():
		t.leave(id, false)
		return nil, ctxerr.Of(ctx)
	}
}

// try takes the turn of an id if no other goroutine has it.
func (t *turns) try(id string) (leave func(), ok bool) {
	select {
	case <-t.enter(id).free:
		return func() { t.leave(id, true) }, true
	default:
		t.leave(id, false)
		return nil, false
	}
}
