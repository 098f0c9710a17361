package service

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
)

// A Spec says how boxes of one kind are made, and what becomes of them.
type Spec struct {
	// ID names it: letters, digits, "_", ".", "-", "/" and ":", at most 128, a letter or digit
	// first.
	ID string
	// Config is what each box is made of. Its Name, Keep and Docker are the service's to set.
	Config sshbox.Config
	// Ports are what the boxes serve, for Info.URLs.
	Ports []Port
	// Health says how to find out whether a box serves. Default: a box that runs is Running.
	Health *Health
	// Env is added to each box's environment, "NAME=value". The engine shows it to whoever may ask
	// (docker inspect): what is secret comes with StartOptions.Env.
	Env []string
	// Lifecycle says when boxes are paused and deleted. Default: never.
	Lifecycle Lifecycle
	// Warm is how many boxes each process of the service keeps ready for Start. Default: none.
	Warm int
	// MaxPerOwner is how many boxes of this spec an owner may have. Default: any number.
	MaxPerOwner int
}

// A Port is one that a box serves on.
type Port struct {
	// letters, digits and "_", at most 30, a letter or digit first: it becomes part of host names,
	// where capital letters are small ones
	Name string
	Port int
}

// Health says how to ask a box whether it serves: an HTTP GET, through Dial, that is answered with
// a status below 400. A box that does not answer is Starting for the first 15 s and Error
// afterwards.
//
// Only the process that has the box open (Open, Start, WaitRunning) asks; for others a box that
// runs is Running, since to ask they would have to take it over.
type Health struct {
	Port int
	Path string // default "/"
}

// A Lifecycle says when boxes are paused and deleted. The zero value of a field switches it off.
type Lifecycle struct {
	// Idle: a box in which nothing has gone on for so long is paused: no command, job, connection
	// or request (Service.Used).
	Idle time.Duration
	// Session: a box that has run for so long since its start or its last Resume is paused.
	Session time.Duration
	// Keep: a box that has not run for so long is deleted.
	Keep time.Duration
	// MaxRunning: when more boxes of the spec run, the least recently used is paused first.
	MaxRunning int
}

// DefaultLifecycle pauses after 20 minutes of idleness and after 12 hours, and deletes what has not
// run for 10 days.
var DefaultLifecycle = Lifecycle{Idle: 20 * time.Minute, Session: 12 * time.Hour,
	Keep: 10 * 24 * time.Hour}

// Specs is a store of specs. Its methods may be called concurrently. Callers do not change the
// specs that they get.
type Specs interface {
	// Get returns the spec of an ID. The error is ErrNotFound if there is none.
	Get(ctx context.Context, id string) (*Spec, error)
	// BatchGet returns the specs of at most 100 IDs, in the order of the IDs. If some specs do not
	// exist, they are nil in the result, and the error beside it is ErrNotFound.
	BatchGet(ctx context.Context, ids []string) ([]*Spec, error)
	// Search returns specs in the order of their IDs: at most limit of them, from 1 to 100; 0 means
	// 100. page is "" for the first page, and for any other the next that the call before it
	// returned. After the last page, next is "".
	Search(ctx context.Context, page string, limit int) (specs []*Spec, next string, err error)
	// Default returns the spec that Start takes if none is named. The error is ErrNotFound if there
	// is no default.
	Default(ctx context.Context) (*Spec, error)
}

var (
	validSpecID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)
	validPort   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_]{0,29}$`)
)

// Check says what in the spec cannot be: an *InvalidError, or nil.
func (s *Spec) Check() error {
	if s == nil {
		return invalid("Spec", "it is nil")
	}
	if !validSpecID.MatchString(s.ID) {
		return invalid("Spec.ID", "%q: it has to be of letters, digits, \"_\", \".\", \"-\", "+
			"\"/\" and \":\", at most 128, a letter or digit first", s.ID)
	}
	names := map[string]bool{}
	for _, p := range s.Ports {
		switch {
		case !validPort.MatchString(p.Name):
			return invalid("Spec.Ports", "the name %q: it has to be of letters, digits and "+
				"\"_\", at most 30, a letter or digit first", p.Name)
		case names[strings.ToLower(p.Name)]:
			return invalid("Spec.Ports", "the name %q is there twice", p.Name)
		case p.Port < 1 || p.Port > 65535:
			return invalid("Spec.Ports", "%s has the port %d: it has to be from 1 to 65535", p.Name,
				p.Port)
		}
		names[strings.ToLower(p.Name)] = true
	}
	if h := s.Health; h != nil && (h.Port < 1 || h.Port > 65535 || h.Path != "" &&
		!strings.HasPrefix(h.Path, "/")) {
		return invalid("Spec.Health", "the port %d and the path %q: give a port from 1 to 65535, "+
			"and a path that begins with \"/\"", h.Port, h.Path)
	}
	if s.Config.Name != "" || s.Config.Keep || s.Config.Docker != nil {
		return invalid("Spec.Config", "Name, Keep and Docker are the service's to set: leave "+
			"them out")
	}
	if err := environ.Check(s.Env); err != nil {
		return invalid("Spec.Env", "%v", err)
	}
	l := s.Lifecycle
	if l.Idle < 0 || l.Session < 0 || l.Keep < 0 || l.MaxRunning < 0 {
		return invalid("Spec.Lifecycle", "%+v: nothing may be negative; zero switches a field off",
			l)
	}
	if s.Warm < 0 || s.MaxPerOwner < 0 {
		return invalid("Spec", "Warm is %d and MaxPerOwner %d: neither may be negative", s.Warm,
			s.MaxPerOwner)
	}
	return nil
}

// request returns what a Place needs to make a box of the spec.
func (s *Spec) request(id string, created time.Time) place.Request {
	r := place.Request{ID: id, Spec: s.ID, Config: s.Config, Created: created}
	r.Config.Env = slices.Concat(s.Config.Env, s.Env)
	switch l := s.Lifecycle; {
	case l.Idle != 0:
		r.PausedBy = "Idle"
	case l.Session != 0:
		r.PausedBy = "Session"
	case l.MaxRunning != 0:
		r.PausedBy = "MaxRunning"
	}
	return r
}
