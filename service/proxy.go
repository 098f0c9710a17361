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
// is published, a box without network is reached too, and one listener serves all boxes. The host
// or the path of a request names the box and one of its spec's Ports, in the form that URLs writes.
//
// A request needs the box's session key: in the header X-Session-API-Key, in the query's parameter
// session_api_key, or in the cookie of a browser. Without it the answer is 401. With it the answer
// is 503 if the box does not run. The box does not see the key.
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
// Proxy panics if o.URL is not an http or https URL with a host.
func Proxy(s *Service, o ProxyConfig) http.Handler {
	if s == nil {
		panic("service: Proxy: the Service is nil")
	}
	if err := checkBase(o.URL); err != nil {
		panic("service: Proxy: ProxyConfig.URL: " + err.Error())
	}
	if o.Next == nil {
		o.Next = http.NotFoundHandler()
	}
	o.Logger = guard.Logger(o.Logger)
	return &proxy{s: s, o: o}
}

type proxy struct {
	s *Service
	o ProxyConfig
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, ok := destinationOf(p.o.URL, r.Host, r.URL.Path)
	if !ok {
		p.o.Next.ServeHTTP(w, r)
		return
	}
	info, status, err := p.box(r, d)
	switch {
	case err != nil:
		p.o.Logger.Error("proxy: find the box", "box", d.id, "error", err)
		http.Error(w, "The engine of the boxes does not answer.", http.StatusServiceUnavailable)
		return
	case status == "": // the same for a wrong key and for a box that does not exist
		http.Error(w, "There is no box with this address and this session key.",
			http.StatusUnauthorized)
		return
	case status != Running:
		http.Error(w, fmt.Sprintf("The box does not run: it is %s.", status),
			http.StatusServiceUnavailable)
		return
	}
	if p.login(w, r, d, info) {
		return
	}
	i := slices.IndexFunc(info.URLs, func(u URL) bool { return strings.EqualFold(u.Name, d.port) })
	if i < 0 {
		http.Error(w, fmt.Sprintf("The box has no port named %q.", d.port), http.StatusNotFound)
		return
	}
	defer p.s.Used(d.id)()
	// Else net/http closes the request's body when the answer begins, and the transport takes that
	// for a reason to end its connection to the box: answers are cut. HTTP/2 needs no such switch,
	// and has none.
	_ = http.NewResponseController(w).EnableFullDuplex()
	p.to(d, info.URLs[i].Port).ServeHTTP(w, r)
}

// box returns the box that a request is for, and its status. The status is "" if there is no such
// box or the request has not its key.
func (p *proxy) box(r *http.Request, d destination) (_ *Info, _ Status, err error) {
	idKey := p.s.idKey(d.id)
	keys := slices.DeleteFunc(keysOf(r, d, p.o.URL.Scheme), func(k string) bool {
		return len(k) < len(idKey) || !sameKey(k[:len(idKey)], idKey)
	})
	if len(keys) == 0 {
		return nil, "", nil
	}
	ctx, done, err := p.s.begin(r.Context())
	if err != nil {
		return nil, "", err
	}
	defer func() { done(&err) }()
	record, err := p.s.find(ctx, d.id)
	if errors.Is(err, ErrNotFound) {
		return nil, "", nil
	}
	if err != nil || record.Note == nil {
		return nil, "", err
	}
	key := p.s.key(record)
	if !slices.ContainsFunc(keys, func(k string) bool { return sameKey(k, key) }) {
		return nil, "", nil
	}
	info, err := p.s.info(ctx, record)
	if err != nil {
		return nil, "", err
	}
	return info, info.Status, nil
}

// login answers a browser that opens a page with the key in the address: with a cookie in its
// place.
func (p *proxy) login(w http.ResponseWriter, r *http.Request, d destination, info *Info) bool {
	opens := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
	if !opens || !r.URL.Query().Has(KeyParameter) {
		return false
	}
	http.SetCookie(w, &http.Cookie{
		Name: d.keyCookie(), Value: info.SessionKey, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: true,
	})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	target := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath,
		RawQuery: withoutKey(r.URL.RawQuery)}
	if strings.HasPrefix(target.Path, "//") { // which would be another host's
		target.Path, target.RawPath = "/"+strings.TrimLeft(target.Path, "/"), ""
	}
	w.Header().Set("Location", target.String())
	w.WriteHeader(http.StatusSeeOther)
	return true
}

// to returns a proxy to a port of a box. Connections are not kept: one that a box's server has just
// closed, or that is of before a pause, fails the request that gets it, and each holds its box
// awake.
func (p *proxy) to(d destination, port int) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetXForwarded()
			r.Out.Header.Set("X-Forwarded-Proto", p.o.URL.Scheme)
			removeKey(r.Out)
			r.Out.URL.Scheme, r.Out.URL.Host = "http", net.JoinHostPort("localhost",
				strconv.Itoa(port))
			if d.prefix != "" {
				r.Out.Header.Set("X-Forwarded-Prefix", d.prefix)
				r.Out.URL.Path = strings.TrimPrefix(r.Out.URL.Path, d.prefix)
				r.Out.URL.RawPath = strings.TrimPrefix(r.Out.URL.RawPath, d.prefix)
			}
			// what servers compare a WebSocket's Origin with, and make addresses of
			r.Out.Host = r.In.Host
		},
		ModifyResponse: d.modify,
		FlushInterval:  -1,
		Transport: &http.Transport{
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				box, err := p.s.Open(ctx, d.id)
				if err != nil {
					return nil, err
				}
				return box.Dial(ctx, network, address)
			},
		},
		ErrorLog: slog.NewLogLogger(p.o.Logger.Handler(), slog.LevelWarn),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // nobody reads the answer
			}
			p.o.Logger.Warn("proxy: ask the box", "box", d.id, "port", port, "error", err)
			text := fmt.Sprintf("The box does not answer on port %d.", port)
			if errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed) ||
				errors.Is(err, ErrNotFound) {
				text = "The box is gone."
			}
			http.Error(w, text, http.StatusBadGateway)
		},
	}
}

// modify keeps the cookies of a box from other boxes, and from the proxy's own; and in the path
// form adds the prefix that the box does not know.
func (d destination) modify(r *http.Response) error {
	if loc := r.Header.Get("Location"); d.prefix != "" && strings.HasPrefix(loc, "/") &&
		!strings.HasPrefix(loc, "//") {
		r.Header.Set("Location", d.prefix+loc)
	}
	cookies := r.Header["Set-Cookie"]
	r.Header.Del("Set-Cookie")
	for _, line := range cookies {
		if name, _, _ := strings.Cut(line, "="); !isKeyCookie(strings.TrimSpace(name)) {
			r.Header.Add("Set-Cookie", d.cookie(line))
		}
	}
	return nil
}

func (d destination) cookie(line string) string {
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
