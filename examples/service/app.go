package main

import (
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"

	"github.com/sandshell/sandshell/service"
)

//go:embed page
var files embed.FS

// An app serves the page, the API and events: everything but the ports of boxes.
type app struct {
	service *service.Service
	// requests are those of the API that are under way. An http.Server waits for no terminals.
	requests sync.WaitGroup
}

// handler serves the page to everybody, and everything else to clients that have the token.
func (a *app) handler(token string, logger *slog.Logger) http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the path is a constant
	}
	mux := http.NewServeMux()
	handler := service.Handler(a.service, service.HandlerConfig{Logger: logger})
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.requests.Add(1)
		defer a.requests.Done()
		handler.ServeHTTP(w, r)
	})
	for _, path := range []string{"/sandboxes", "/sandboxes/", "/sandbox-specs", "/sandbox-specs/",
		"/openapi.json"} {
		mux.Handle(path, api)
	}
	mux.HandleFunc("GET /events", a.events)
	all := requireToken(token, http.FileServerFS(page), mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// style-src is for xterm.js, which sets styles.
		w.Header().Set("Content-Security-Policy", "default-src 'self'; style-src 'self' "+
			"'unsafe-inline'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		all.ServeHTTP(w, r)
	})
}

// events sends the page an event whenever a box is made, is removed or changes.
func (a *app) events(w http.ResponseWriter, r *http.Request) {
	events, err := a.service.Watch(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	fmt.Fprint(w, "data: hello\n\n")
	out.Flush()
	for e := range events {
		if e.ID == "" {
			continue // whether changes are seen: those that were missed come too
		}
		fmt.Fprintf(w, "data: %s %s\n\n", e.ID, e.Status)
		out.Flush()
	}
}
