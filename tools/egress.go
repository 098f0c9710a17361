package tools

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/guard"
)

// An Egress is the way out of a box that has no network of its own, such as an *egress.Exit. Its
// methods may be called concurrently.
type Egress interface {
	// Reachable returns what programs of the box may reach, each as the text of a rule.
	Reachable() []string
	// RefusedSince returns what was refused since an earlier call, each in a few words, the oldest
	// first. It may leave out the oldest of many. mark is the next of the earlier call, or 0, and
	// next counts all that was ever refused.
	RefusedSince(mark int) (refused []string, next int)
}

// An outlet is the Egress of a tool.
type outlet struct {
	egress   Egress
	maxReply int
	told     *told // shared by the tools of all sets that New combines
	// describes says that the tool's description says what may be reached.
	describes bool
}

// A told is how much of what was refused replies have told.
type told struct {
	mu   sync.Mutex
	mark int
}

// withEgress gives the tools the Egress of c. The descriptions of those that are named say what may
// be reached.
func (s *Set) withEgress(c Config, describing ...string) *Set {
	if c.Egress == nil {
		return s
	}
	t := &told{}
	s.err = guard.Call("Config.Egress", func() error {
		_, t.mark = c.Egress.RefusedSince(0)
		return nil
	})
	for i := range s.tools {
		o := &outlet{egress: c.Egress, maxReply: c.MaxReply, told: t}
		for _, name := range describing {
			o.describes = o.describes || s.tools[i].Name == name
		}
		s.tools[i].outlet = o
	}
	return s
}

// shareOutlets makes the tools with the same Egress tell what was refused once.
func (s *Set) shareOutlets() {
	for i := range s.tools {
		o := s.tools[i].outlet
		if o == nil || !reflect.ValueOf(o.egress).Comparable() {
			continue
		}
		for _, first := range s.tools[:i] {
			f := first.outlet
			if f != nil && reflect.ValueOf(f.egress).Comparable() && f.egress == o.egress {
				shared := *o
				shared.told = f.told
				s.tools[i].outlet = &shared
				break
			}
		}
	}
}

const (
	mostRefused   = 5  // lines of a reply
	mostReachable = 20 // rules of a description
)

// describe returns what a tool's description says of the network.
func (o *outlet) describe() string {
	var rules []string
	err := guard.Call("Config.Egress", func() error { rules = o.egress.Reachable(); return nil })
	switch {
	case err != nil:
		return ""
	case len(rules) == 0:
		return " Programs reach nothing outside of the box."
	}
	if more := len(rules) - mostReachable; more > 0 {
		rules = append(rules[:mostReachable:mostReachable], fmt.Sprintf("and %d more", more))
	}
	return " Of what is outside of the box, programs reach only this, by a proxy that is set in " +
		"the environment: " + strings.Join(rules, ", ") + "."
}

// note returns the lines about what was refused since the last reply.
func (o *outlet) note() (string, error) {
	o.told.mu.Lock()
	defer o.told.mu.Unlock()
	var refused []string
	next := 0
	err := guard.Call("Config.Egress", func() error {
		refused, next = o.egress.RefusedSince(o.told.mark)
		return nil
	})
	if err != nil {
		return "", err
	}
	more := next - o.told.mark
	o.told.mark = next
	var texts []string
	times := map[string]int{}
	for _, text := range refused {
		if times[text] == 0 {
			if len(texts) == mostRefused {
				continue
			}
			texts = append(texts, text)
		}
		times[text]++
		more--
	}
	var b strings.Builder
	for _, text := range texts {
		if times[text] > 1 {
			text += fmt.Sprintf(", %d times", times[text])
		}
		fmt.Fprintf(&b, "[egress: %s]\n", text)
	}
	if more > 0 {
		fmt.Fprintf(&b, "[egress: %d more refused]\n", more)
	}
	return b.String(), nil
}

// tell returns the reply with the lines about what was refused.
func (o *outlet) tell(r *Reply) (*Reply, error) {
	note, err := o.note()
	if err != nil || note == "" {
		return r, err
	}
	with := *r
	with.Text = shorten(o.maxReply-len(note)-1, endLine(r.Text)) + note
	return &with, nil
}
