package egress

import (
	"net"
	"regexp"
	"slices"
	"strconv"
)

// Denied returns the Events of what was refused, the last 100, the oldest first.
func (x *Exit) Denied() []Event {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.denied)
}

// Reachable returns the rules of this moment that allow something, as text: Config.Allow, and what
// Allow has added.
func (x *Exit) Reachable() []string {
	texts := []string{}
	for _, r := range x.rules().allow {
		texts = append(texts, r.String())
	}
	return texts
}

// plainName matches the names of programs that say nothing but a name, to a model that reads them.
var plainName = regexp.MustCompile(`^[\w.+-]+$`)

// RefusedSince returns what was refused since an earlier call, each in a few words such as
// "api.example.com:443 refused (curl)", the oldest first. It names the program where the box says
// which it was, by Outward, and the name is plain. Of many it has the last 100. mark is the next of
// the earlier call, or 0. next is how many were refused since the Exit was made.
func (x *Exit) RefusedSince(mark int) (refused []string, next int) {
	x.mu.Lock()
	next = x.deniedCount
	events := x.denied[len(x.denied)-min(max(next-mark, 0), len(x.denied)):]
	events = slices.Clone(events)
	x.mu.Unlock()
	rules := x.rules()
	for _, e := range events {
		text := e.short(rules) + " refused"
		if plainName.MatchString(e.Program) {
			text += " (" + e.Program + ")"
		}
		refused = append(refused, text)
	}
	return refused, next
}

// short returns what the Event is about. It is the whole request only if other requests to the host
// are allowed.
func (e *Event) short(rules *policy) string {
	w := wish{scheme: e.Scheme, host: e.Host, port: e.Port, method: e.Method, path: e.Path}
	switch {
	case e.Host == "":
		return "a connection to the proxy"
	case e.Method != "" && e.Scheme != "" && rules.knows(e.Host, e.Port):
		return w.text()
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
}
