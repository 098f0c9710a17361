package egress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
)

// A Request is what a program of a box asks for and no rule allows: see Config.Ask.
type Request struct {
	Box    string // as in Event
	Scheme string // "https", "http", "wss", "ws", or "tcp" for a connection that nobody looks into
	Host   string
	Port   int
	Method string // "" for a connection
	Path   string // without the query; "" for a connection
}

// String returns the request as text: "POST https://api.example.com/upload".
func (r Request) String() string {
	w := wish{scheme: r.Scheme, host: r.Host, port: r.Port, method: r.Method, path: r.Path}
	return w.text()
}

// A Verdict is the answer to a Request. The zero value refuses this one.
type Verdict struct {
	Allow bool
	For   Scope
}

// A Scope says what a Verdict is for.
type Scope int

// The scopes. ThisBox and AllBoxes are for all requests with the scheme, the host and the port of
// the Request. To allow less, allow this request, and call Exit.Allow with a rule.
const (
	// ThisRequest is for this request or connection alone.
	ThisRequest Scope = iota
	// ThisBox is for the box, until its Exit is closed.
	ThisBox
	// AllBoxes is for all boxes of the Gate, until SetRules replaces its rules.
	AllBoxes
)

const (
	defaultAskTime = 2 * time.Minute
	mostAsked      = 16   // questions of a box at a time
	mostRemembered = 1000 // refusals
)

// A question is what a Scope but ThisRequest is for.
type question struct {
	scheme, host string
	port         int
}

// refusals are the questions that were refused for a scope. The zero value has none.
type refusals struct {
	mu  sync.Mutex
	all map[question]bool
}

func (r *refusals) has(q question) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[q]
}

func (r *refusals) add(q question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[question]bool{}
	}
	if len(r.all) < mostRemembered { // else the question is asked again
		r.all[q] = true
	}
}

func (r *refusals) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = nil
}

// An asking has the questions of a box.
type asking struct {
	refused refusals

	mu     sync.Mutex
	now    int                        // questions that are asked or wait for their turn
	others map[question]chan struct{} // a token for each question that is asked
}

// errTooMany is why a question is not asked.
var errTooMany = fmt.Errorf("%d requests of this sandbox wait for a decision already: try again "+
	"later", mostAsked)

// enter waits until no other request asks the same question, so that the answer to that may answer
// this one.
func (a *asking) enter(ctx context.Context, q question) (leave func(), err error) {
	a.mu.Lock()
	if a.now == mostAsked {
		a.mu.Unlock()
		return nil, errTooMany
	}
	a.now++
	if a.others == nil {
		a.others = map[question]chan struct{}{}
	}
	turn := a.others[q]
	if turn == nil {
		turn = make(chan struct{}, 1)
		a.others[q] = turn
	}
	a.mu.Unlock()
	exit := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.now--; a.now == 0 {
			a.others = nil
		}
	}
	select {
	case turn <- struct{}{}:
		return func() { <-turn; exit() }, nil
	case <-ctx.Done():
		exit()
		return nil, context.Cause(ctx)
	}
}

// ask returns the rule that allows what no rule of the moment allows, if Config.Ask says so. Else
// it returns why not, or nil if there is nobody to ask.
func (x *Exit) ask(ctx context.Context, w *wish) (*Rule, error) {
	if x.gate.config.Ask == nil || x.rules().denied(w) {
		return nil, nil
	}
	limit := x.gate.config.AskTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("nobody has decided about it within %v: try again", limit))
	defer cancel()
	q := question{w.scheme, w.host, w.port}
	leave, err := x.asking.enter(ctx, q)
	if err != nil {
		return nil, err
	}
	defer leave()
	rules := x.rules()
	switch rule := rules.find(w); {
	case rule != nil: // allowed meanwhile
		return rule, nil
	case rules.denied(w):
		return nil, nil
	case x.asking.refused.has(q) || x.gate.refused.has(q):
		return nil, errRefused
	}
	v, err := x.verdict(ctx, w)
	if err != nil {
		return nil, err
	}
	return x.apply(v, q, w)
}

var errRefused = errors.New("it was asked for, and refused")

// verdict calls Config.Ask. It does not wait for a function that does not heed its ctx.
func (x *Exit) verdict(ctx context.Context, w *wish) (Verdict, error) {
	var v Verdict
	r := Request{Box: x.name, Scheme: w.scheme, Host: w.host, Port: w.port, Method: w.method,
		Path: limited(w.path, 1<<10)}
	done := guard.Go("Config.Ask", func() error { v = x.gate.config.Ask(ctx, r); return nil })
	select {
	case err := <-done:
		if err != nil {
			return Verdict{}, errors.New("the question about it has failed")
		}
		if ctx.Err() != nil {
			return Verdict{}, context.Cause(ctx)
		}
		return v, nil
	case <-ctx.Done():
		return Verdict{}, context.Cause(ctx)
	}
}

// apply remembers a verdict, and returns the rule that it makes.
func (x *Exit) apply(v Verdict, q question, w *wish) (*Rule, error) {
	rule := &Rule{Scheme: q.scheme, Host: q.host, Ports: []int{q.port}}
	switch {
	case !v.Allow && v.For == ThisBox:
		x.asking.refused.add(q)
	case !v.Allow && v.For == AllBoxes:
		x.gate.refused.add(q)
	case v.Allow && v.For == ThisBox:
		x.allow([]Rule{*rule})
	case v.Allow && v.For == AllBoxes:
		x.gate.allow(*rule)
	case v.Allow:
		w.once = true
		if w.method != "" { // so that no header asks for another one
			rule.Methods = []string{w.method}
		}
	}
	if !v.Allow {
		return nil, errRefused
	}
	return rule, nil
}

// allow adds a rule for all boxes.
func (g *Gate) allow(r Rule) {
	for {
		p := g.policy.Load()
		if g.policy.CompareAndSwap(p, p.with([]Rule{r})) {
			return
		}
	}
}

// askConn is ask for a connection that has no answer yet. Its ctx ends when the client goes.
func (x *Exit) askConn(c *conn, w *wish) (*Rule, error) {
	if x.gate.config.Ask == nil {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(x.server.BaseContext(nil))
	defer cancel(nil)
	_ = c.SetReadDeadline(time.Time{})
	x.conns.carries(c, nil) // it is not idle
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if _, err := c.r.Peek(1); err != nil {
			cancel(errors.New("the client has gone"))
		}
	}()
	rule, err := x.ask(ctx, w)
	_ = c.SetReadDeadline(time.Unix(1, 0)) // ends Peek
	<-watched
	_ = c.SetReadDeadline(time.Now().Add(firstByte))
	return rule, err
}
