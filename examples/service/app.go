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

// An app is all that is not a port of a box.
type app struct {
	service   *service.Service
	terminals sync.WaitGroup // open ones
}

// handler serves the page to everybody, and the rest to those who have the token.
func (a *app) handler(token string, log *slog.Logger) http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // it is embedded
	}
	mux := http.NewServeMux()
	api := service.Handler(a.service, service.HandlerConfig{Logger: log})
	for _, path := range []string{"/sandboxes", "/sandboxes/", "/sandbox-specs", "/sandbox-specs/",
		"/openapi.json"} {
		mux.Handle(path, api)
	}
	mux.HandleFunc("GET /events", a.events)
	mux.HandleFunc("GET /terminal/{id}", a.attached)
	all := loggedIn(token, http.FileServerFS(page), mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// xterm.js sets styles.
		w.Header().Set("Content-Security-Policy", "default-src 'self'; style-src 'self' "+
			"'unsafe-inline'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		all.ServeHTTP(w, r)
	})
}

// events tells the page that a box has come, gone or changed.
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
		fmt.Fprintf(w, "data: %s %s\n\n", e.ID, e.Status)
		out.Flush()
	}
}
