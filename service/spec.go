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

// A Spec says how boxes of one kind are made, and what becomes of them. The tags "spec" are the
// keys of fields in the files of DirSpecs.
type Spec struct {
	// ID has at most 128 letters, digits, "_", ".", "-", "/" and ":". It begins with a letter or
	// digit.
	ID string `spec:"id"`
	// Config is what each box is made of. Its Name, Keep and Docker must not be set: the service
	// sets them.
	Config sshbox.Config `spec:",inline"`
	// Ports are the ports that the boxes serve on, for Info.URLs.
	Ports []Port `spec:"ports"`
	// Health says how to find out whether a box serves. If it is nil, a box that runs is Running.
	Health *Health `spec:"health"`
	// Egress is what programs of the boxes may reach, as texts of rules of package egress, such as
	// "packages.example.com": at most 200, together at most 8 KiB. The boxes have no network beside
	// that: Config.Network is "none". A process of the service serves the way out; while none runs,
	// the boxes reach nothing. If the Place can do it, Config.Outward is set too, so that all
	// programs are served. A box keeps the rules that it was started with. Config.Egress of the
	// service adds secrets and limits, and StartOptions.Egress rules of one box. An empty list that
	// is not nil stands for boxes that have only those. Default: Config.Network alone decides.
	Egress []string `spec:"egress"`
	// Env is added to the environment of each box, as "NAME=value". It is not for secrets, because
	// anyone who can ask the engine sees it (docker inspect): use StartOptions.Env.
	Env []string `spec:"env"`
	// Lifecycle says when boxes are paused and deleted. Default: never.
	Lifecycle Lifecycle `spec:"lifecycle"`
	// Warm is how many boxes each process of the service keeps ready for Start. If such a box
	// cannot be made, for example because there is no such image, the Logger of the service's
	// Config tells why. Default: none.
	Warm int `spec:"warm"`
	// MaxPerOwner is how many boxes of this spec an owner may have. 0 means any number.
	MaxPerOwner int `spec:"max_per_owner"`
}

// A Port is a port that a box serves on.
type Port struct {
	// Name has at most 30 letters, digits and "_", and begins with a letter or digit. It becomes
	// part of host names, so names that differ only in case are the same.
	Name string `spec:"name"`
	Port int    `spec:"port"`
}

// A Health says how to ask a box whether it serves. The service sends an HTTP GET through Dial. The
// box serves if the status of the answer is below 400. Otherwise the box is Starting for the first
// 15 s, and Error afterwards.
//
// Only the process that is connected to the box (by Start, Open or WaitRunning) asks. For other
// processes a box that runs is Running, because to ask they would have to take the box over.
type Health struct {
	Port int    `spec:"port"` // in the box
	Path string `spec:"path"` // default: "/"
}

// A Lifecycle says when boxes are paused and deleted. The zero value of a field switches it off.
type Lifecycle struct {
	// Idle is after how long without a command, job, connection or request (see Service.Used) a box
	// is paused.
	Idle time.Duration `spec:"idle"`
	// Session is how long after its start or its last Resume a box is paused.
	Session time.Duration `spec:"session"`
	// Wake resumes a paused box when somebody uses it: by Open, or by a request to the Proxy. A
	// request to the Proxy does not start a box again whose programs have ended: what answers it
	// has ended too, and its session key no longer counts.
	Wake bool `spec:"wake"`
	// Keep is after how long without running a box is deleted.
	Keep time.Duration `spec:"keep"`
	// MaxRunning is how many boxes of the spec may run. If more do, the service pauses the least
	// recently used.
	MaxRunning int `spec:"max_running"`
}

// DefaultLifecycle pauses a box that is idle for 20 minutes or has run for 12 hours, and deletes a
// box that has not run for 10 days.
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

// Check returns an *InvalidError that names what is wrong with the spec, or nil. It does not ask
// the engine, so it does not know whether the image exists.
func (s *Spec) Check() error {
	if s == nil {
		return invalid("Spec", "it is nil: give a *Spec")
	}
	if !validSpecID.MatchString(s.ID) {
		return invalid("Spec.ID", "%q: write at most 128 letters, digits, \"_\", \".\", "+
			"\"-\", \"/\" and \":\", a letter or digit first", s.ID)
	}
	names := map[string]bool{}
	for _, p := range s.Ports {
		switch {
		case !validPort.MatchString(p.Name):
			return invalid("Spec.Ports", "the name %q: write at most 30 letters, digits and "+
				"\"_\", a letter or digit first", p.Name)
		case names[strings.ToLower(p.Name)]:
			return invalid("Spec.Ports", "the name %q occurs twice: give each port its own", p.Name)
		case p.Port < 1 || p.Port > 65535:
			return invalid("Spec.Ports", "%s has the port %d: give one from 1 to 65535", p.Name,
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
		return invalid("Spec.Config", "the service sets Name, Keep and Docker: leave them out")
	}
	if err := s.checkEgress(); err != nil {
		return err
	}
	if err := s.config().Check(); err != nil {
		field, reason, _ := strings.Cut(err.Error(), ": ")
		return invalid("Spec."+field, "%s", reason)
	}
	if err := environ.Check("entry", s.Env); err != nil {
		return invalid("Spec.Env", "%v", err)
	}
	l := s.Lifecycle
	for _, f := range []struct {
		name     string
		value    any
		negative bool
	}{
		{"Idle", l.Idle, l.Idle < 0}, {"Session", l.Session, l.Session < 0},
		{"Keep", l.Keep, l.Keep < 0}, {"MaxRunning", l.MaxRunning, l.MaxRunning < 0},
	} {
		if f.negative {
			return invalid("Spec.Lifecycle."+f.name, "%v is negative: 0 switches it off", f.value)
		}
	}
	if s.Warm < 0 {
		return invalid("Spec.Warm", "%d is negative: 0 means none", s.Warm)
	}
	if s.MaxPerOwner < 0 {
		return invalid("Spec.MaxPerOwner", "%d is negative: 0 means any number", s.MaxPerOwner)
	}
	return nil
}

// request returns what a Place needs to make a box of the spec.
func (s *Spec) request(id string, created time.Time) place.Request {
	r := place.Request{ID: id, Spec: s.ID, Config: s.config(), Egress: s.Egress != nil,
		Created: created}
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
