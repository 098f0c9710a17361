package service

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/service/place"
)

// SetHosts narrows what the rules of a box's spec and of its StartOptions allow: the box may reach
// only these hosts of it. A host is a name, "*.example.com" for all names below example.com, an IP
// address, or "*". At most 200 may be given, together at most 8 KiB. An empty list that is not nil
// allows nothing, and nil all that the rules allow. What Config.Egress allows beside the rules is
// narrowed too.
//
// Requests under way go on: see [egress.Gate.SetRules]. If another process serves the way out of
// the box, it follows within Config.Every. The error is ErrNotFound if there is no such box, and
// ErrInvalid if a host is wrong, or if the box has no rules: see Spec.Egress.
func (s *Service) SetHosts(ctx context.Context, id string, hosts []string) error {
	hosts, err := checkHosts("hosts", hosts)
	if err != nil {
		return err
	}
	return s.change(ctx, "set the hosts of", id, func(ctx context.Context, r *place.Record) error {
		if !hasExit(r) {
			return invalidArgument("hosts", "boxes of spec %q have no way out: give the spec an "+
				"Egress", r.Spec)
		}
		if err := s.note(ctx, r, func(n *place.Note) { n.Hosts = hosts }); err != nil {
			return err
		}
		c := s.connectionTo(r)
		if c == nil {
			return nil
		}
		select {
		case <-c.mu:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
		defer func() { c.mu <- struct{}{} }()
		return c.narrow(hosts)
	})
}

// checkHosts returns the hosts as rules have them, or an *InvalidError.
func checkHosts(field string, hosts []string) ([]string, error) {
	if hosts == nil {
		return nil, nil
	}
	if size := len(strings.Join(hosts, "")); len(hosts) > maxRules || size > maxRulesText {
		return nil, invalidArgument(field, "they are %d, with %d bytes: give at most %d, with %d "+
			"bytes", len(hosts), size, maxRules, maxRulesText)
	}
	normal := []string{}
	for i, host := range hosts {
		text := host
		if a, err := netip.ParseAddr(host); err == nil && a.Is6() {
			text = "[" + host + "]"
		}
		r, err := egress.ParseRule(text)
		if err == nil && (r.Scheme != "" || len(r.Ports)+len(r.Methods)+len(r.Paths) > 0) {
			err = fmt.Errorf("%q: give a host alone, as in api.example.com", host)
		}
		if err != nil {
			return nil, invalidArgument(fmt.Sprintf("%s[%d]", field, i), "%v", err)
		}
		normal = append(normal, r.Host)
	}
	return normal, nil
}

// common returns the hosts that two forms of hosts have in common, as a form.
func common(a, b string) (string, bool) {
	if within(a, b) {
		return a, true
	}
	return b, within(b, a)
}

// within reports whether a form of hosts stands for none that the other form does not stand for.
func within(a, b string) bool {
	suffix, many := strings.CutPrefix(b, "*")
	return a == b || many && len(a) > len(suffix) && strings.HasSuffix(a, suffix)
}

// narrowed returns what both the rules and the hosts allow. Nil hosts are all.
func narrowed(rules []egress.Rule, hosts []string) []egress.Rule {
	if hosts == nil {
		return rules
	}
	var both []egress.Rule
	for _, r := range rules {
		for _, host := range hosts {
			if its, ok := common(r.Host, host); ok {
				narrow := r
				narrow.Host = its
				both = append(both, narrow)
			}
		}
	}
	return both
}

// rulesOf returns the rules of what a box may reach; nil if its spec has no Egress.
func rulesOf(r *place.Record) []string {
	if r.Note.Hosts == nil {
		return slices.Clone(r.Note.Egress)
	}
	if r.Note.Egress == nil {
		return nil
	}
	texts := []string{}
	for _, rule := range narrowed(egress.Rules(r.Note.Egress...), r.Note.Hosts) {
		texts = append(texts, rule.String())
	}
	return slices.Compact(texts)
}

// narrow makes the gate allow what its rules and the hosts allow. The caller has w.mu.
func (w *wayOut) narrow(hosts []string) error {
	if w.gate == nil {
		return nil // the next one is narrowed when it is made
	}
	var now []string
	if known := w.hosts.Load(); known != nil {
		now = *known
	}
	if slices.Equal(now, hosts) && (now == nil) == (hosts == nil) {
		return nil
	}
	if hosts == nil {
		w.hosts.Store(nil)
	} else {
		w.hosts.Store(&hosts)
	}
	return w.gate.SetRules(narrowed(w.rules.Allow, hosts), w.rules.Deny)
}

// askOf returns Config.Ask of a gate, for requests to the hosts only. The gate is that of one box,
// so a verdict for this box is one for all boxes of the gate, which narrow takes back.
func (w *wayOut) askOf(ask func(context.Context, egress.Request) egress.Verdict) func(
	context.Context, egress.Request) egress.Verdict {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, r egress.Request) egress.Verdict {
		if hosts := w.hosts.Load(); hosts != nil &&
			!slices.ContainsFunc(*hosts, func(h string) bool { return within(r.Host, h) }) {
			return egress.Verdict{}
		}
		v := ask(ctx, r)
		if v.For == egress.ThisBox {
			v.For = egress.AllBoxes
		}
		return v
	}
}

// followHosts makes this process follow the hosts that another process has set.
func (s *Service) followHosts(r *place.Record) error {
	c := s.connectionTo(r)
	if c == nil || !hasExit(r) {
		return nil
	}
	select {
	case <-c.mu:
		defer func() { c.mu <- struct{}{} }()
		return c.narrow(r.Note.Hosts)
	default: // whoever has it narrows, or the next round
		return nil
	}
}
