package service

import (
	"context"
	"fmt"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
)

// An Egress is what a box may reach, and what it was refused.
type Egress struct {
	// Rules are those of the box's spec and of its StartOptions, as the box's Hosts narrow them.
	// They are nil if the spec has no Egress.
	Rules []string
	// Served reports whether this process serves the box's way out. If another process does, this
	// one does not know what was refused.
	Served bool
	// Refused are the last requests and connections that were refused since this process began to
	// serve, at most 100, the oldest first. The names in them may be anything that a program of the
	// box has written.
	Refused []egress.Event
	// RefusedCount is how many were refused since then.
	RefusedCount int
}

// Egress returns what a box may reach, and what it was refused. The error is ErrNotFound if there
// is no such box.
func (s *Service) Egress(ctx context.Context, id string) (_ *Egress, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	r, err := s.find(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("box %q: %w", id, err)
	}
	e := &Egress{}
	if r.Note != nil {
		e.Rules = rulesOf(r)
	}
	if c := s.connectionTo(r); c != nil && r.Status == Running {
		if exit := c.serving(); exit != nil {
			e.Served, e.Refused = true, exit.Denied()
			_, e.RefusedCount = exit.RefusedSince(0)
		}
	}
	return e, nil
}

// The most that a spec or the StartOptions may have. All rules of a box are in its Note.
const (
	maxRules     = 200
	maxRulesText = 8 << 10
)

// checkRules returns an *InvalidError about one of the rules of a field.
func checkRules(field string, rules []string) error {
	if len(rules) > maxRules {
		return invalid(field, "it has %d rules: give at most %d", len(rules), maxRules)
	}
	size := 0
	for i, text := range rules {
		size += len(text)
		if _, err := egress.ParseRule(text); err != nil {
			return invalid(fmt.Sprintf("%s[%d]", field, i), "%v", err)
		}
	}
	if size > maxRulesText {
		return invalid(field, "it has %d bytes: give at most %d", size, maxRulesText)
	}
	return nil
}

// checkEgress checks Egress, and what cannot be beside it.
func (s *Spec) checkEgress() error {
	if s.Egress == nil {
		return nil
	}
	if n := s.Config.Network; n != "" && n != string(sandbox.NetworkNone) {
		return invalid("Spec.Config.Network", "%q: Spec.Egress needs boxes without a network: "+
			"write \"none\", or leave it out", n)
	}
	return checkRules("Spec.Egress", s.Egress)
}

// config returns what the boxes of the spec are made of, but for Spec.Env.
func (s *Spec) config() sshbox.Config {
	c := s.Config
	if s.Egress != nil {
		c.Network = string(sandbox.NetworkNone)
	}
	return c
}

// checkEgress checks the rules of StartOptions for a box of a spec, and brings Hosts into the form
// that is compared.
func (o *StartOptions) checkEgress(spec *Spec) error {
	if len(o.Egress) == 0 && o.Hosts == nil {
		return nil
	}
	field := "StartOptions.Egress"
	if len(o.Egress) == 0 {
		field = "StartOptions.Hosts"
	}
	if spec.Egress == nil {
		return invalidArgument(field, "boxes of spec %q have no way out: give the spec an Egress, "+
			"which may be empty", spec.ID)
	}
	if err := checkRules(field, o.Egress); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	hosts, err := checkHosts("StartOptions.Hosts", o.Hosts)
	o.Hosts = hosts
	return err
}

// rules returns the rules of a new box; nil if the spec has no Egress.
func (s *Spec) rules(o StartOptions) []string {
	if s.Egress == nil {
		return nil
	}
	return append(append([]string{}, s.Egress...), o.Egress...)
}

// hasExit reports whether a box has a way out that a process of the service serves while it runs.
func hasExit(r *place.Record) bool { return r.Note != nil && r.Note.Egress != nil }
