package e2bbox

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A front is a proxy before a gateway, which does to requests what servers and proxies do.
type front struct {
	url string

	mu       sync.Mutex
	conns    map[net.Conn]bool
	requests []*http.Request
	// before is called with each request. If it returns true, it has answered.
	before func(w http.ResponseWriter, r *http.Request) bool
	// The proxy passes nothing of a request, or of an answer, on before it has all of it.
	holdRequests, holdAnswers bool
}

func startFront(t testing.TB, g *e2btest.Gateway) *front {
	f := &front{conns: map[net.Conn]bool{}}
	target, err := url.Parse(g.URL)
	require.NoError(t, err)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	pass := &httputil.ReverseProxy{FlushInterval: -1, Transport: transport,
		ErrorLog: log.New(io.Discard, "", 0), // it tells of each cut
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler)
		}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.Clone(t.Context()))
		before, holdRequests, holdAnswers := f.before, f.holdRequests, f.holdAnswers
		f.mu.Unlock()
		if before != nil && before(w, r) {
			return
		}
		if holdRequests {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		}
		if !holdAnswers {
			pass.ServeHTTP(w, r)
			return
		}
		held := httptest.NewRecorder()
		pass.ServeHTTP(held, r)
		for name, values := range held.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(held.Code)
		w.Write(held.Body.Bytes())
	}))
	server.Config.ConnState = func(c net.Conn, s http.ConnState) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if s == http.StateNew {
			f.conns[c] = true
		} else if s == http.StateClosed {
			delete(f.conns, c)
		}
	}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	f.url = server.URL
	return f
}

// cut closes all connections.
func (f *front) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
}

// set changes the front.
func (f *front) set(change func(f *front)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// count returns how many of the requests so far match.
func (f *front) count(match func(r *http.Request) bool) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if match(r) {
			n++
		}
	}
	return n
}

func ofData(r *http.Request) bool { return r.Header.Get("E2b-Sandbox-Id") != "" }

func isStreamInput(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/StreamInput") }

// through returns the Config of boxes of a gateway behind a front.
func through(t testing.TB, g *e2btest.Gateway, f *front) Config {
	c := configOf(t, g)
	c.APIURL, c.SandboxURL = f.url, f.url
	return c
}

// eventually waits until f returns true. what says what f waits for.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(testenv.Limit); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
