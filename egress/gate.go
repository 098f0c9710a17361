package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Config says what boxes may reach. The zero value allows nothing.
type Config struct {
	// Allow has what boxes may reach: see Rule. Rules makes it of text. The first rule that allows
	// a request counts. Default: nothing.
	Allow []Rule
	// Deny has what boxes must not reach, whatever Allow says. In Deny, a rule without a scheme is
	// for all schemes, and one without ports for all ports. Connections that are not looked into
	// (tls and tcp) are refused if a rule of Deny is for any part of what they may carry.
	Deny []Rule
	// Ask decides about what no rule allows: a person, or a policy of this program. It is not
	// called for what a rule of Deny is for. Only the connection waits for it. Requests to the same
	// port of a host wait for each other, so that one Verdict may answer them all. ctx ends with
	// the connection, the Exit and AskTimeout, and then the request is refused. The end of the
	// connection is not noticed before the body of an HTTP/1 request has come. At most 16 requests
	// of a box wait; more are refused. A verdict allows public addresses only. If Ask panics, the
	// request is refused. It may be called from several goroutines.
	// Default: what no rule allows is refused.
	Ask func(ctx context.Context, r Request) Verdict
	// AskTimeout is how long a request waits for Ask. Default: 2 minutes.
	AskTimeout time.Duration
	// Secrets are values that programs of the box use and never see.
	Secrets []Secret
	// Tape records requests, or answers them from a recording. Default: none.
	Tape *Tape
	// Cache keeps files of packages, so that boxes download them once. Default: none.
	Cache *Cache
	// Advisory allows boxes that have another way out, such as a LocalBox. Their programs need not
	// heed the rules: the gate is then for secrets, limits and the log.
	Advisory bool
	// Limits bound what each box may take.
	Limits Limits
	// Log gets an Event at the end of each request and connection, from several goroutines. If it
	// blocks or panics, only that request suffers. Default: none.
	Log func(Event)
	// Roots are the authorities that servers outside are verified by. Default: the machine's.
	Roots *x509.CertPool
	// Resolver looks up the names of hosts, here and not in the box. Default: the machine's.
	Resolver *net.Resolver
}

// Limits bound what each box may take.
type Limits struct {
	// Conns is how many connections from the box may be open at once, and how many requests may be
	// under way. Of more, the oldest idle connection is closed, or they wait. Default: 256.
	Conns int
	// Rate is how many requests and connections may begin in a second; as many may come at once.
	// Further requests get status 429. Default: no limit.
	Rate float64
	// Bytes is how many bytes of bodies the box may send and receive together. Further requests get
	// status 429, and what is under way is cut. Default: no limit.
	Bytes int64
}

const defaultConns = 256

// A Gate decides what boxes may reach. All its methods may be called concurrently.
type Gate struct {
	config  Config
	policy  atomic.Pointer[policy]
	refused refusals // for all boxes
	secrets []guarded
	deck    *deck  // nil if there is no tape
	shelf   *shelf // nil if there is no cache

	mu     sync.Mutex
	exits  map[*Exit]bool
	count  int // of exits, ever
	closed bool
}

var errClosed = errors.New("the gate is closed")

// New makes a Gate. It opens nothing: Attach does.
func New(c Config) (*Gate, error) {
	if err := c.Limits.check(); err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	if c.AskTimeout < 0 {
		return nil, fmt.Errorf("egress: Config.AskTimeout: %v is negative: 0 stands for %v",
			c.AskTimeout, defaultAskTime)
	}
	c.AskTimeout = cmp.Or(c.AskTimeout, defaultAskTime)
	g := &Gate{config: c, exits: map[*Exit]bool{}}
	if err := g.setRules(c.Allow, c.Deny); err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	var err error
	if g.secrets, err = guardAll(c.Secrets, g.policy.Load()); err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	if c.Tape != nil {
		if g.deck, err = c.Tape.open(); err != nil {
			return nil, fmt.Errorf("egress: %w", err)
		}
	}
	if c.Cache != nil {
		if g.shelf, err = c.Cache.open(); err != nil {
			return nil, fmt.Errorf("egress: %w", err)
		}
	}
	return g, nil
}

func (l *Limits) check() error {
	switch {
	case l.Conns < 0:
		return fmt.Errorf("Config.Limits.Conns: %d is negative: 0 stands for %d", l.Conns,
			defaultConns)
	case l.Rate < 0:
		return fmt.Errorf("Config.Limits.Rate: %v is negative: 0 stands for no limit", l.Rate)
	case l.Bytes < 0:
		return fmt.Errorf("Config.Limits.Bytes: %d is negative: 0 stands for no limit", l.Bytes)
	case l.Conns == 0:
		l.Conns = defaultConns
	}
	return nil
}

// SetRules replaces Config.Allow and Config.Deny, for all boxes at once. Requests that begin later
// are judged by the new rules. Requests under way go on. Connections of rules with the schemes tls
// and tcp are cut if the new rules do not allow them. After an error the old rules stay.
func (g *Gate) SetRules(allow, deny []Rule) error {
	if err := g.setRules(allow, deny); err != nil {
		return fmt.Errorf("set the rules: %w", err)
	}
	g.refused.clear()
	for _, x := range g.all() {
		x.conns.cut(x.rules())
	}
	return nil
}

func (g *Gate) setRules(allow, deny []Rule) error {
	p, err := newPolicy(allow, deny, "Config.Allow", "Config.Deny")
	if err != nil {
		return err
	}
	g.policy.Store(p)
	return nil
}

// add makes the Gate close an Exit that is complete.
func (g *Gate) add(x *Exit) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errClosed
	}
	g.exits[x] = true
	return nil
}

func (g *Gate) all() []*Exit {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]*Exit, 0, len(g.exits))
	for x := range g.exits {
		list = append(list, x)
	}
	return list
}

// Close closes the exits of all boxes. Closing again does nothing.
func (g *Gate) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	var wait sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, x := range g.all() {
		wait.Go(func() {
			if err := x.Close(); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
