package egress

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
)

// A refusal is an answer of ours in place of the server's.
type refusal struct {
	status int
	why    string
}

// Error implements error.
func (r *refusal) Error() string { return r.why }

// textPrefix begins what is said inside.
const textPrefix = "sandshell egress: "

// serveRequest serves a request of the box.
func (x *Exit) serveRequest(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*conn)
	e := newRecord(c.dest)
	e.Method, e.Path = limited(r.Method, 20), limited(r.URL.EscapedPath(), 1<<10)
	if !x.begin() {
		panic(http.ErrAbortHandler)
	}
	defer x.active.Done()
	defer x.log(e)
	err := x.judge(r, c.dest, e, func(rule *Rule, wanted *wish) {
		x.forward(w, r, rule, wanted, e)
	})
	if err != nil {
		x.refuseRequest(w, e, err)
	}
}

// limited returns the text, or its begin.
func limited(text string, most int) string { return text[:min(len(text), most)] }

// refuseRequest answers a request in place of the server.
func (x *Exit) refuseRequest(w http.ResponseWriter, e *record, r *refusal) {
	e.Denied, e.Status = r.why, r.status
	x.log(e)
	answerText(w, r.status, r.why)
}

func answerText(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Sandshell-Egress", "refused")
	switch status {
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "1")
	case http.StatusProxyAuthRequired:
		h.Set("Proxy-Authenticate", challenge)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, textPrefix+text+"\n")
}

// judge calls forward with the rule that allows a request, or says why none does.
func (x *Exit) judge(r *http.Request, d dest, e *record, forward func(*Rule, *wish)) *refusal {
	wanted, wrong := x.wish(r, d)
	if wrong != nil {
		return wrong
	}
	e.Scheme, e.Host, e.Port = wanted.scheme, wanted.host, wanted.port
	rules := x.rules()
	if x.gate.config.Ask == nil && !rules.knows(wanted.host, wanted.port) {
		return &refusal{http.StatusForbidden, rules.why(wanted)}
	}
	if wrong := mismatch(r, wanted); wrong != nil {
		return wrong
	}
	rule := rules.find(wanted)
	if rule == nil {
		var err error
		rule, err = x.ask(r.Context(), wanted)
		switch {
		case errors.Is(err, errTooMany):
			return &refusal{http.StatusTooManyRequests, err.Error()}
		case rule == nil:
			return &refusal{http.StatusForbidden, rules.whyNot(wanted, err)}
		}
	}
	e.Rule = rule.String()
	select {
	case x.running <- struct{}{}:
		defer func() { <-x.running }()
	case <-r.Context().Done():
		return &refusal{http.StatusTooManyRequests, "too many requests are under way"}
	}
	if err := x.meter.begin(); err != nil {
		return &refusal{http.StatusTooManyRequests, err.Error()}
	}
	forward(rule, wanted)
	return nil
}

// wish returns what a request is for. On a proxy's connection that is in its URL; else it is what
// the connection is for, whatever the request says.
func (x *Exit) wish(r *http.Request, d dest) (*wish, *refusal) {
	bad := func(why string) (*wish, *refusal) {
		return nil, &refusal{http.StatusBadRequest, why}
	}
	w := &wish{scheme: "http", host: d.host, port: d.port, method: r.Method, path: r.URL.Path,
		clean: cleanPath(r.URL.Path, r.URL.RawPath)}
	if d.tls {
		w.scheme = "https"
	}
	if d.host == "" {
		if !x.authorized(r.Header) {
			return nil, &refusal{http.StatusProxyAuthRequired, needsToken}
		}
		if r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil {
			return bad("this is a proxy: ask it for http://HOST/PATH, or use CONNECT")
		}
		var err error
		if w.host, w.port, err = splitHostPort(r.URL.Host, 80); err != nil {
			return bad(err.Error())
		}
	}
	if r.Method == http.MethodConnect || r.URL.Opaque != "" ||
		w.path != "" && !strings.HasPrefix(w.path, "/") {
		return bad("this request has no path")
	}
	if w.path == "" {
		w.path, w.clean = "/", true
	}
	if isWebSocket(r) {
		w.scheme = map[string]string{"http": "ws", "https": "wss"}[w.scheme]
	}
	return w, nil
}

// mismatch returns why a request is not for what its connection is for.
func mismatch(r *http.Request, w *wish) *refusal {
	names := []string{r.Host}
	if r.URL.Host != "" { // in HTTP/2 it may be another one
		names = append(names, r.URL.Host)
	}
	for _, given := range names {
		host, port, err := splitHostPort(given, defaultPort(w.scheme))
		if err == nil && host == w.host && port == w.port {
			continue
		}
		return &refusal{http.StatusMisdirectedRequest, fmt.Sprintf(
			"the request is for %q, and its connection for %s:%d", limited(given, 300), w.host,
			w.port)}
	}
	return nil
}

func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && r.ProtoMajor == 1
}

// overrides are the headers that ask a server for another method than the request's.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// forward sends a request to its server, and the answer to the box.
func (x *Exit) forward(w http.ResponseWriter, r *http.Request, rule *Rule, wanted *wish,
	e *record) {
	if !isWebSocket(r) {
		r.Header.Del("Upgrade") // h2c, say, behind which requests would not be seen
		r.Header.Del("Http2-Settings")
	}
	if len(rule.Methods) > 0 {
		for _, h := range overrides {
			r.Header.Del(h)
		}
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = body{x.meter.counted(r.Body, &e.sent), r.Body}
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { rewrite(p, wanted) },
		Transport: tripper(func(out *http.Request) (*http.Response, error) {
			send := func(out *http.Request) (*http.Response, error) {
				return x.putIn(out, wanted, e, x.transport(rule))
			}
			keep := func(out *http.Request) (*http.Response, error) {
				return x.cached(out, wanted, rule, e, send)
			}
			return x.tape(out, wanted, e, keep)
		}),
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(res *http.Response) error {
			e.Status = res.StatusCode
			res.Header.Del("Alt-Svc") // HTTP/3 is not to be had here
			res.Body = x.countAnswer(res, e)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			var ours *refusal
			switch {
			case errors.As(err, &ours):
			case errors.Is(err, errNotPublic):
				ours = &refusal{http.StatusForbidden, wanted.host + ": " + explain(err)}
			case errors.Is(err, errBytes):
				ours = &refusal{http.StatusTooManyRequests, errBytes.Error()}
			default:
				e.Error, e.Status = x.scrub(err.Error()), http.StatusBadGateway
				answerText(w, e.Status, wanted.host+": "+explain(err))
				return
			}
			x.refuseRequest(w, e, ours)
		},
	}
	proxy.ServeHTTP(finalOnly{w}, r)
}

// A tripper is a function that sends requests.
type tripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// countAnswer returns the body of an answer, counted.
func (x *Exit) countAnswer(res *http.Response, e *record) io.ReadCloser {
	counted := body{x.meter.counted(res.Body, &e.received), res.Body}
	if w, ok := res.Body.(io.Writer); ok && res.StatusCode == http.StatusSwitchingProtocols {
		return &upgraded{counted, w, x.meter, &e.sent}
	}
	return counted
}

// rewrite makes the request for the server. Its destination is what was judged, not what it says.
func rewrite(p *httputil.ProxyRequest, w *wish) {
	scheme := map[string]string{"http": "http", "ws": "http", "https": "https",
		"wss": "https"}[w.scheme]
	host := w.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if w.port != defaultPort(w.scheme) {
		host = net.JoinHostPort(w.host, fmt.Sprint(w.port))
	}
	out := p.Out
	out.URL.Scheme, out.URL.Host, out.Host, out.URL.User = scheme, host, host, nil
	out.URL.RawQuery = p.In.URL.RawQuery // as it came
	if _, given := out.Header["User-Agent"]; !given {
		out.Header.Set("User-Agent", "") // else net/http adds its own
	}
}

// A finalOnly drops answers of status 1xx: what they say is the server's affair.
type finalOnly struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (f finalOnly) WriteHeader(status int) {
	if status >= 200 {
		f.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for http.ResponseController.
func (f finalOnly) Unwrap() http.ResponseWriter { return f.ResponseWriter }
