// Package deeds has the operations of HTTP by which a client works in a box: commands, sessions,
// jobs, files and terminals.
package deeds

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

// A Config says how deeds are served.
type Config struct {
	// Open returns the box that a request is about, which runs. The request calls done at its end.
	Open func(r *http.Request) (box sandbox.Sandbox, done func(), err error)
	// Heartbeat is how often a stream of events says that it is still there. Default: 15 s.
	Heartbeat time.Duration
	// MaxRequests is how many requests about one box may be under way. Default: 200.
	MaxRequests int
	// MaxUpload is the greatest size of a file that a client sends, in bytes. Default: 1 GiB.
	MaxUpload int64
	// Origins are the patterns, of path.Match, of the hosts whose pages may open terminals, beside
	// the host of the request.
	Origins []string
}

// Operations returns the operations.
func Operations(c Config) []api.Operation {
	c.Heartbeat, c.MaxRequests = cmp.Or(c.Heartbeat, 15*time.Second), cmp.Or(c.MaxRequests, 200)
	c.MaxUpload = cmp.Or(c.MaxUpload, 1<<30)
	d := &deeds{Config: c, underway: map[string]int{}}
	return slices.Concat(d.sessionOperations(), d.jobOperations(), d.fileOperations(),
		[]api.Operation{on(d, "GET", "/terminal", terminal)})
}

type deeds struct {
	Config

	mu       sync.Mutex
	underway map[string]int // requests, by the id of the box
}

// box is the prefix of all paths.
const box = "/sandboxes/{id}"

// on returns an operation on the box of a request.
func on[Q, B any](d *deeds, method, path string, serve func(c *call, query *Q,
	body *B) (any, error)) api.Operation {
	return api.On(method, box+path, func(w http.ResponseWriter, r *http.Request, query *Q,
		body *B) (any, error) {
		leave, err := d.enter(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		defer leave()
		sb, done, err := d.Open(r)
		if err != nil {
			return nil, err
		}
		defer done()
		return serve(&call{Sandbox: sb, deeds: d, w: w, r: r}, query, body)
	})
}

// enter counts a request about a box. The caller calls leave at its end.
func (d *deeds) enter(id string) (leave func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.underway[id] >= d.MaxRequests {
		return nil, api.Errorf(http.StatusTooManyRequests, "too_many",
			"%d requests about this box are under way: wait until one has ended", d.MaxRequests)
	}
	d.underway[id]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.underway[id]--; d.underway[id] == 0 {
			delete(d.underway, id)
		}
	}, nil
}

// A call is a request about a box.
type call struct {
	sandbox.Sandbox
	*deeds
	w http.ResponseWriter
	r *http.Request
}

// success is what an operation answers that has nothing to tell.
var success = map[string]bool{"success": true}
