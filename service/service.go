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

// A Config has the settings of a Service.
type Config struct {
	// Place is where the boxes are. The service closes it. Default: Docker(nil).
	Place place.Place
	// Specs are the kinds of boxes that there are: NewSpecs, OpenSpecs, or a store of one's own.
	Specs Specs
	// Secret makes session keys: at least 32 bytes, the same in all processes of the service. With
	// another secret all keys are others.
	Secret []byte
	// Logger gets what happens beside the results. Default: none.
	Logger *slog.Logger
	// Name tells this service's boxes from those of other services on the same engine: lower-case
	// letters and digits, at most 20. Default: "default".
	Name string
	// URL returns where a port of a running box is reached, for Info.URLs. If it panics, what asks
	// for the box returns an error. Default: nowhere.
	URL func(id string, port Port) string
	// Every is how often the service looks after its boxes: pauses and deletes what is due, and
	// removes what killed processes have left. Default: 15 s.
	Every time.Duration
}

// A Service has many boxes. Its methods may be called from several goroutines.
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
	close  func() error   // closeOnce, once
	tasks  sync.WaitGroup // what goes on in the background, and calls

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

// New returns a service. Boxes that there are already are found again. It does not wait for the
// engine.
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
		return invalid("Config.Name", "%q: it has to be of lower-case letters and digits, at "+
			"most 20", o.Name)
	case o.Specs == nil:
		return invalid("Config.Specs", "it is nil: NewSpecs makes one")
	case len(o.Secret) < minSecret:
		return invalid("Config.Secret", "it has %d bytes: at least %d are needed, of a random "+
			"generator", len(o.Secret), minSecret)
	case o.Every < 0:
		return invalid("Config.Every", "it is %v: it has to be more than nothing", o.Every)
	}
	return nil
}

// Specs returns the store of specs.
func (s *Service) Specs() Specs { return s.store }

// Close lets go of all boxes, which go on, and removes those that were only kept ready. It waits
// for what goes on in the background. Calls that are under way end; they and later ones return
// sandbox.ErrClosed.
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

// begin begins a call. The context that it returns ends with the call's own, and when the service
// closes. The caller has done called with the call's error at its end.
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

// turns has the calls about one box wait for each other.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	free    chan struct{} // holds a token while nobody has the turn
	waiting int
}

// enter says that somebody wants the turn.
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

// leave says that somebody has had the turn, or no longer wants it.
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

// take waits for its turn, and returns what ends it.
func (t *turns) take(ctx context.Context, id string) (func(), error) {
	select {
	case <-t.enter(id).free:
		return func() { t.leave(id, true) }, nil
	case <-ctx.Done():
		t.leave(id, false)
		return nil, ctxerr.Of(ctx)
	}
}

// try takes the turn if nobody has it.
func (t *turns) try(id string) (leave func(), ok bool) {
	select {
	case <-t.enter(id).free:
		return func() { t.leave(id, true) }, true
	default:
		t.leave(id, false)
		return nil, false
	}
}
