package egress

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/nearest"
)

// A policy is the rules of a box at one moment. It does not change.
type policy struct{ allow, deny []Rule }

// newPolicy checks the rules. The names are those of the lists, for errors.
func newPolicy(allow, deny []Rule, allowName, denyName string) (*policy, error) {
	p := &policy{slices.Clone(allow), slices.Clone(deny)}
	for name, rules := range map[string][]Rule{allowName: p.allow, denyName: p.deny} {
		for i := range rules {
			if err := rules[i].check(); err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", name, i, err)
			}
		}
	}
	return p, nil
}

// with returns the policy with more rules that allow.
func (p *policy) with(allow []Rule) *policy {
	if len(allow) == 0 {
		return p
	}
	return &policy{slices.Concat(p.allow, allow), p.deny}
}

// find returns the first rule that allows what is wished for, or nil if there is none or if a rule
// denies it.
func (p *policy) find(w *wish) *Rule {
	if p.denied(w) {
		return nil
	}
	for i := range p.allow {
		if p.allow[i].allows(w) {
			return &p.allow[i]
		}
	}
	return nil
}

// denied reports whether a rule denies what is wished for.
func (p *policy) denied(w *wish) bool {
	return slices.ContainsFunc(p.deny, func(r Rule) bool { return r.denies(w) })
}

// keeps reports whether a connection may go on that was allowed by a rule, or once.
func (p *policy) keeps(w *wish) bool {
	return p.find(w) != nil || w.once && !p.denied(w)
}

// knows reports whether some rule allows something of a host's port.
func (p *policy) knows(host string, port int) bool {
	return slices.ContainsFunc(p.allow, func(r Rule) bool {
		return r.matchesHost(host) && r.matchesAnyPort(port)
	})
}

func (r *Rule) matchesAnyPort(port int) bool {
	if len(r.Ports) > 0 || r.Scheme != "" {
		return r.matchesPort(r.Scheme, port)
	}
	return port == 80 || port == 443
}

// mostNamed is how many rules a refusal names.
const mostNamed = 10

// why says to a program of the box, or to a model, why it may not have what it wishes for.
func (p *policy) why(w *wish) string {
	what := fmt.Sprintf("%s:%d", w.host, w.port)
	for i := range p.deny {
		if p.deny[i].denies(w) {
			return fmt.Sprintf("%s is on the list of what this sandbox must not reach (%v)",
				w.text(), p.deny[i])
		}
	}
	if len(p.allow) == 0 {
		return what + " is not allowed: this sandbox may reach nothing"
	}
	var all, here, hosts []string
	for _, r := range p.allow {
		all = append(all, r.String())
		hosts = append(hosts, r.Host)
		if r.matchesHost(w.host) {
			here = append(here, r.String())
		}
	}
	plain := *w
	plain.clean = true
	if p.find(&plain) != nil {
		return w.text() + " is not allowed: its path is not written plainly, without \"..\", " +
			"\"//\" and needless escapes"
	}
	if len(here) > 0 {
		return fmt.Sprintf("%s is not allowed: of this host, the sandbox may reach %s", w.text(),
			someOf(here))
	}
	return fmt.Sprintf("%s is not on the list of what this sandbox may reach%s: %s", what,
		nearHost(w.host, hosts), someOf(all))
}

// nearHost is didYouMean for hosts, of which only those names are compared in which they differ.
func nearHost(host string, hosts []string) string {
	for _, other := range hosts {
		a, b := strings.Split(host, "."), strings.Split(other, ".")
		for len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-1] {
			a, b = a[:len(a)-1], b[:len(b)-1]
		}
		if nearest.Of(strings.Join(a, "."), []string{strings.Join(b, ".")}) != "" {
			return fmt.Sprintf(" (did you mean %q?)", other)
		}
	}
	return ""
}

// whyNot is why, with what came of asking about it.
func (p *policy) whyNot(w *wish, asked error) string {
	if asked == nil {
		return p.why(w)
	}
	return fmt.Sprintf("%s is not allowed: %v", w.text(), asked)
}

func someOf(list []string) string {
	list = slices.Compact(list)
	if more := len(list) - mostNamed; more > 0 {
		list = append(list[:mostNamed:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// text returns what is wished for, as a URL with its method.
func (w *wish) text() string {
	host := w.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if w.port != defaultPort(w.scheme) {
		host = fmt.Sprintf("%s:%d", host, w.port)
	}
	text := w.scheme + "://" + host + w.path
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	if w.method != "" {
		return w.method + " " + text
	}
	return text
}
