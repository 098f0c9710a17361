// Package duplex serves requests through a reverse proxy in both directions at once: an answer may
// begin before its request has been read.
//
// By default, a server of net/http reads the rest of an HTTP/1 request before it sends the answer.
// ResponseController.EnableFullDuplex turns that off. Then the server reads the rest after the
// answer. When it comes to the end of the request, it begins to read ahead in the background, and
// nothing ends that: the next request on the connection panics with "invalid concurrent Body.Read
// call" (https://go.dev/issue/68560). So a connection whose request was not read before its answer
// must not be used again.
package duplex

import (
	"io"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
)

// Serve answers r through p. Where the answer begins before the request has been read, it goes on
// beside the request, and is the last one on its connection. It says so: "Connection: close".
// All other connections are kept.
func Serve(p *httputil.ReverseProxy, w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || r.ContentLength == 0 { // HTTP/2 is always full duplex
		p.ServeHTTP(w, r)
		return
	}
	body := &body{ReadCloser: r.Body}
	in := r.WithContext(r.Context()) // the server looks at the Body of r
	in.Body = body
	p.ServeHTTP(&writer{w, body}, in)
}

// A body notes when it has been read. After that it stays at its end: an http.Transport reads once
// more, when the server may have closed its own Body.
type body struct {
	io.ReadCloser
	read atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.read.Load() {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.read.Store(true)
	}
	return n, err
}

// A writer writes the answer. A ReverseProxy begins each with WriteHeader, except those of
// connections that it takes over, which are not used again either.
type writer struct {
	http.ResponseWriter
	body *body
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if status >= http.StatusOK && !w.body.read.Load() {
		w.Header().Set("Connection", "close")
		// A writer that has no full duplex has no such server behind it.
		_ = http.NewResponseController(w.ResponseWriter).EnableFullDuplex()
	}
	w.ResponseWriter.WriteHeader(status)
}
