package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/duplex"
	"github.com/sandshell/sandshell/service/place"
)

// A ProxyConfig says how a Proxy works. URL must be set.
type ProxyConfig struct {
	// URL is the address of the proxy, as "https://boxes.example.com" or
	// "http://127.0.0.1:8080/boxes". Set Config.URL of the service to URLs(URL).
	URL *url.URL
	// Next serves the requests whose host and path name no box. If it also serves the host of URL,
	// URL needs a path. Default: such requests are answered with 404.
	Next http.Handler
	// Logger logs what goes wrong between proxy and boxes. Default: nothing is logged.
	Logger *slog.Logger
}

// Proxy returns a handler that passes requests on to the ports of boxes, through Dial. So no port
// is published, boxes without a network can be reached too, and one listener serves all boxes. The
// host or the path of a request names the box and one of its spec's Ports, in the form that URLs
// writes.
//
// A request needs the box's session key: in the header X-Session-API-Key, in the query's parameter
// session_api_key, or in the cookie of a browser. Without the key the answer is 401. If the box
// does not run, the answer is 503, unless its spec's Lifecycle has Wake: then the proxy resumes a
// paused box first. The box does not see the key.
//
// The proxy does not ask the engine at each request. The engine's events tell it which boxes run.
// It does not check Spec.Health: the box's own server answers, or the answer is 502.
//
// A browser that opens a page (GET, Accept: text/html) with the key in the query gets a cookie, and
// is redirected to the address without the key. Browsers keep the cookie if they reach the proxy
// over https, or over http on localhost or 127.0.0.1. The cookie counts only in requests of the
// box's own pages and when a person opens a page. Programs use the header.
//
// In the host form, each port is an origin of its own to a browser. In the path form, all boxes are
// one origin: a page from one box can do with the other boxes what the user can. So the path form
// is for programs, and for boxes that trust each other. In either form, serve anything else
// (Handler, your application) on another host than the boxes.
//
// In the host form, all boxes are one site to a browser. Enter the domain of the boxes into the
// public suffix list (https://publicsuffix.org), so that the pages of a box cannot set cookies for
// others. Cookies do not tell ports apart: over plain http on localhost, a server on another port
// gets the cookie of a box if the browser is led to that port.
//
// Preflight requests (CORS) need the key too. If pages of other origins are to ask the boxes, wrap
// the handler in one that answers preflight requests.
//
// WebSockets, server-sent events and bodies of any length are passed on as they come. A request
// counts as use of its box (see Service.Used) until it is answered. In the path form, the proxy
// adapts the paths in Location and Set-Cookie of answers. It does not change links in pages, so
// these must be relative.
//
// Give the http.Server a ReadHeaderTimeout, an IdleTimeout and MaxHeaderBytes. A ReadTimeout or a
// WriteTimeout would cut uploads, downloads and WebSockets that take longer.
//
// Proxy panics if s is nil, or if c.URL is not an http or https URL with a host.
func Proxy(s *Service, c ProxyConfig) http.Handler {
	if s == nil {
		panic("service: Proxy: s is nil: give the Service")
	}
	if err := checkBase(c.URL); err != nil {
		panic("service: ProxyConfig.URL: " + err.Error())
	}
	if c.Next == nil {
		c.Next = http.NotFoundHandler()
	}
	c.Logger = guard.Logger(c.Logger)
	return &proxy{service: s, config: c}
}

type proxy struct {
	service *Service
	config  ProxyConfig
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, ok := destinationOf(p.config.URL, r.Host, r.URL.Path)
	if !ok {
		p.config.Next.ServeHTTP(w, r)
		return
	}
	box, err := p.findBox(r, d)
	switch {
	case err != nil:
		p.config.Logger.Error("proxy: find the box", "box", d.id, "error", err)
		http.Error(w, "The engine of the boxes does not answer.", http.StatusServiceUnavailable)
		return
	case box == nil: // the same for a wrong key and for a box that does not exist
		http.Error(w, "There is no box with this address and this session key.",
			http.StatusUnauthorized)
		return
	case box.Status != Running:
		http.Error(w, fmt.Sprintf("The box does not run: it is %s.", box.Status),
			http.StatusServiceUnavailable)
		return
	}
	if p.login(w, r, d, box.key) {
		return
	}
	i := slices.IndexFunc(box.spec.Ports, func(port Port) bool {
		return strings.EqualFold(port.Name, d.port)
	})
	if i < 0 {
		http.Error(w, fmt.Sprintf("The box has no port named %q.", d.port), http.StatusNotFound)
		return
	}
	defer p.service.Used(d.id)()
	duplex.Serve(p.toPort(d, box.Record, box.spec.Ports[i].Port), w, r)
}

// A keyedBox is a box whose session key a request has.
type keyedBox struct {
	*place.Record
	key  string
	spec *Spec // empty if the box's spec was removed
}

// findBox returns the box that a request is for. It returns nil if there is no such box, or if the
// request does not have its key. It wakes a paused box if that or its spec says so.
func (p *proxy) findBox(r *http.Request, d destination) (_ *keyedBox, err error) {
	idKey := p.service.idKey(d.id)
	keys := slices.DeleteFunc(keysOf(r, d, p.config.URL.Scheme), func(k string) bool {
		return len(k) < len(idKey) || !sameKey(k[:len(idKey)], idKey)
	})
	if len(keys) == 0 {
		return nil, nil
	}
	ctx, done, err := p.service.begin(r.Context())
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	box, err := p.keyed(ctx, keys, d.id, p.service.runningRecord)
	if box == nil && err == nil { // the box may have been started again this very moment
		box, err = p.keyed(ctx, keys, d.id, p.service.askRecord)
	}
	if box == nil || err != nil || box.Status != Paused || !wakes(box.Record, box.spec) ||
		box.Ended && box.Note.Checkpoint == "" {
		return box, err
	}
	if _, err := p.service.Open(ctx, d.id); err != nil {
		return nil, err
	}
	return p.keyed(ctx, keys, d.id, p.service.askRecord)
}

// keyed returns the box of an id, as find finds it, if one of the keys is its session key.
func (p *proxy) keyed(ctx context.Context, keys []string, id string,
	find func(context.Context, string) (*place.Record, error)) (*keyedBox, error) {
	record, err := find(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil || record.Note == nil {
		return nil, err
	}
	key := p.service.key(record)
	if !slices.ContainsFunc(keys, func(k string) bool { return sameKey(k, key) }) {
		return nil, nil
	}
	spec, err := p.service.specOf(ctx, record)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		spec = &Spec{}
	}
	return &keyedBox{Record: record, key: key, spec: spec}, nil
}

// login answers a browser that opens a page with the key in its address. It sets the cookie, and
// redirects to the address without the key. It reports whether it has answered.
func (p *proxy) login(w http.ResponseWriter, r *http.Request, d destination, key string) bool {
	opens := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
	if !opens || !r.URL.Query().Has(KeyParameter) {
		return false
	}
	http.SetCookie(w, &http.Cookie{
		Name: d.keyCookie(), Value: key, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: true,
	})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	target := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath,
		RawQuery: withoutKey(r.URL.RawQuery)}
	if strings.HasPrefix(target.Path, "//") { // a browser would take it for another host
		target.Path, target.RawPath = "/"+strings.TrimLeft(target.Path, "/"), ""
	}
	w.Header().Set("Location", target.String())
	w.WriteHeader(http.StatusSeeOther)
	return true
}

// toPort returns a proxy to a port of a box. It does not keep idle connections. A request on a
// connection that the box's server has just closed, or that a pause has cut, would fail. And each
// open connection would keep its box from being idle.
func (p *proxy) toPort(d destination, r *place.Record, port int) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetXForwarded()
			r.Out.Header.Set("X-Forwarded-Proto", p.config.URL.Scheme)
			removeKey(r.Out)
			r.Out.URL.Scheme, r.Out.URL.Host = "http", net.JoinHostPort("localhost",
				strconv.Itoa(port))
			if d.prefix != "" {
				r.Out.Header.Set("X-Forwarded-Prefix", d.prefix)
				r.Out.URL.Path = strings.TrimPrefix(r.Out.URL.Path, d.prefix)
				r.Out.URL.RawPath = strings.TrimPrefix(r.Out.URL.RawPath, d.prefix)
			}
			// Servers compare a WebSocket's Origin with Host, and make addresses of it.
			r.Out.Host = r.In.Host
		},
		ModifyResponse: d.rewriteAnswer,
		FlushInterval:  -1,
		Transport: &http.Transport{
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return p.service.dial(ctx, r, network, address)
			},
		},
		ErrorLog: slog.NewLogLogger(p.config.Logger.Handler(), slog.LevelWarn),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // nobody reads the answer
			}
			p.config.Logger.Warn("proxy: ask the box", "box", d.id, "port", port, "error", err)
			if errors.Is(err, ErrConflict) {
				http.Error(w, "The box does not run.", http.StatusServiceUnavailable)
				return
			}
			text := fmt.Sprintf("The box does not answer on port %d.", port)
			if errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed) ||
				errors.Is(err, ErrNotFound) {
				text = "The box is gone."
			}
			http.Error(w, text, http.StatusBadGateway)
		},
	}
}

// rewriteAnswer removes cookies that a box sets by the name of the key's. In the path form it adds
// the prefix, which the box does not know, to Location and to the paths of cookies.
func (d destination) rewriteAnswer(r *http.Response) error {
	if loc := r.Header.Get("Location"); d.prefix != "" && strings.HasPrefix(loc, "/") &&
		!strings.HasPrefix(loc, "//") {
		r.Header.Set("Location", d.prefix+loc)
	}
	cookies := r.Header["Set-Cookie"]
	r.Header.Del("Set-Cookie")
	for _, line := range cookies {
		if name, _, _ := strings.Cut(line, "="); !isKeyCookie(strings.TrimSpace(name)) {
			r.Header.Add("Set-Cookie", d.rewriteCookie(line))
		}
	}
	return nil
}

// rewriteCookie removes the Domain of a Set-Cookie, so that other boxes do not get the cookie. In
// the path form it adds the prefix to Path.
func (d destination) rewriteCookie(line string) string {
	parts := strings.Split(line, ";")
	kept := parts[:1]
	for _, p := range parts[1:] {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		switch {
		case strings.EqualFold(name, "Domain"):
			continue
		case strings.EqualFold(name, "Path") && d.prefix != "":
			p = " Path=" + d.prefix + "/" + strings.TrimPrefix(value, "/")
		}
		kept = append(kept, p)
	}
	return strings.Join(kept, ";")
}
