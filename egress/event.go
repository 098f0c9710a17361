package egress

import (
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
)

// An Event tells of one request, or of one connection that nobody looks into. No Event holds the
// value of a Secret, a query, a header or a body.
type Event struct {
	Time     time.Time     `json:"time"`               // of its begin
	Box      string        `json:"box"`                // the kind of box, and a number
	Via      string        `json:"via"`                // "http", "connect", "socks" or "outward"
	Scheme   string        `json:"scheme,omitempty"`   // as in Rule; "" if it is not known
	Host     string        `json:"host,omitempty"`     // a name or an IP address; "" if unknown
	Port     int           `json:"port,omitempty"`     // 0 if unknown
	Method   string        `json:"method,omitempty"`   // "" for a connection
	Path     string        `json:"path,omitempty"`     // escaped, at most 1 KiB
	Status   int           `json:"status,omitempty"`   // that the box got; 0 for a connection
	Rule     string        `json:"rule,omitempty"`     // that allowed it
	Denied   string        `json:"denied,omitempty"`   // why it was refused; "" if it was not
	Error    string        `json:"error,omitempty"`    // why it failed
	Secrets  []string      `json:"secrets,omitempty"`  // the names of those that were put in
	Sent     int64         `json:"sent"`               // bytes of bodies, or of the connection
	Received int64         `json:"received"`           // as Sent
	Duration time.Duration `json:"duration"`           // in nanoseconds
	Replayed bool          `json:"replayed,omitempty"` // the answer came from a Tape
	Cached   bool          `json:"cached,omitempty"`   // the answer came from a Cache

	// Who has connected is known of connections by "outward", as the box says it.
	Program string `json:"program,omitempty"` // the name of the program, as ps shows it
	PID     int    `json:"pid,omitempty"`     // of its process in the box
	Session string `json:"session,omitempty"` // the id of the session or job it belongs to
}

// JSONL returns a function for Config.Log that writes each Event as a line of JSON. Errors of w are
// ignored.
func JSONL(w io.Writer) func(Event) {
	var mu sync.Mutex
	encoder := json.NewEncoder(w)
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		_ = encoder.Encode(e)
	}
}

// mostDenied is how many Events Exit.Denied keeps.
const mostDenied = 100

// A record is an Event that has not ended.
type record struct {
	Event
	sent, received atomic.Int64
	logged         bool
}

// newRecord returns the record of what begins now.
func newRecord(d dest) *record {
	return &record{Event: Event{Time: time.Now(), Via: d.via, Host: d.host, Port: d.port,
		Program: d.program, PID: d.pid, Session: d.session}}
}

// log tells of an Event that has ended, once. What was refused is told of before the box gets the
// answer, so that who sees the answer finds it in Denied.
func (x *Exit) log(r *record) {
	if r.logged {
		return
	}
	r.logged = true
	e := r.Event
	e.Box, e.Duration = x.name, time.Since(e.Time)
	e.Sent, e.Received = r.sent.Load(), r.received.Load()
	if e.Denied != "" {
		x.mu.Lock()
		if len(x.denied) == mostDenied {
			x.denied = x.denied[1:]
		}
		x.denied = append(x.denied, e)
		x.deniedCount++
		x.mu.Unlock()
	}
	if log := x.gate.config.Log; log != nil {
		_ = guard.Call("Config.Log", func() error { log(e); return nil })
	}
}
