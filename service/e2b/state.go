package e2b

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/e2b"
)

// A state is what this program knows of a box: what its clients have started, and as whom. It is
// kept while something uses it, and for idleLimit after that.
type state struct {
	id      string
	forget  func() // removes it from its handler if users is 0
	streams *cutter

	mu        sync.Mutex
	users     int         // requests and processes
	idle      *time.Timer // calls forget; nil while there are users
	processes []*process
	watchers  map[string]*watcher
	home      *account                 // of the box's own user, once it is known
	kernels   map[string]chan struct{} // by context: full while a request runs code there
}

// states are the states of the boxes that are in use.
type states struct {
	mu   sync.Mutex
	byID map[string]*state
}

// idleLimit is how long a state is kept that nothing uses, so that a client's next request need not
// find out again as whom it works.
const idleLimit = 10 * time.Minute

// of returns the state of a box, for a request. The caller calls its release at the end.
func (s *states) of(id string) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byID[id]
	if b == nil {
		b = &state{id: id, streams: &cutter{}}
		b.forget = func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.users == 0 && s.byID[id] == b {
				delete(s.byID, id)
			}
		}
		s.byID[id] = b
	}
	b.retain()
	return b
}

// ids returns the ids of the boxes that are in use.
func (s *states) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.byID))
}

// cut ends the streams of a box that is paused or removed.
func (s *states) cut(id string) {
	s.mu.Lock()
	b := s.byID[id]
	s.mu.Unlock()
	if b != nil {
		b.streams.cut()
		b.forget()
	}
}

func (b *state) retain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.users++
	if b.idle != nil {
		b.idle.Stop()
		b.idle = nil
	}
}

func (b *state) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.users--
	if b.users == 0 {
		b.idle = time.AfterFunc(idleLimit, b.forget)
	}
}

func (b *state) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.processes)
}

func (b *state) all() []*process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.processes)
}

func (b *state) add(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.processes = append(b.processes, p)
}

func (b *state) remove(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.processes = slices.DeleteFunc(b.processes, func(q *process) bool { return q == p })
}

// find returns a running process.
func (b *state) find(s *e2b.Selector) (*process, error) {
	if s == nil || s.PID == 0 && s.Tag == "" {
		return nil, e2b.Errorf(e2b.InvalidArgument, "process: it is missing: give a pid or a tag")
	}
	for _, p := range b.all() {
		if s.Tag != "" && p.tag == s.Tag || s.Tag == "" && p.pid == s.PID {
			return p, nil
		}
	}
	if s.Tag != "" {
		return nil, e2b.Errorf(e2b.NotFound, "process with tag %q not found", s.Tag)
	}
	return nil, e2b.Errorf(e2b.NotFound, "process with pid %d not found", s.PID)
}

// A cutter ends the streams of a box.
type cutter struct {
	mu      sync.Mutex
	streams map[*func()]struct{}
}

// add adds a stream, which end ends. The caller calls remove at the stream's end.
func (c *cutter) add(end func()) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams == nil {
		c.streams = map[*func()]struct{}{}
	}
	key := &end
	c.streams[key] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.streams, key)
	}
}

func (c *cutter) cut() {
	c.mu.Lock()
	streams := slices.Collect(maps.Keys(c.streams))
	c.mu.Unlock()
	for _, end := range streams {
		(*end)()
	}
}
