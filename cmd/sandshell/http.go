package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// tokenVariable is the environment variable with the token of clients over HTTP.
const tokenVariable = "SANDSHELL_TOKEN"

// maxConns is how many connections there may be at a time.
const maxConns = 1000

// serveHTTP serves a handler until ctx ends, and closes the listener. A signal is the usual end,
// and no error. path is where clients begin.
func serveHTTP(ctx context.Context, l net.Listener, path string, t token,
	handler http.Handler) error {
	say("serving http://" + l.Addr().String() + path + "; the token is " + t.shown)
	return serveListener(ctx, l, handler)
}

// serveListener is serveHTTP, and says nothing.
func serveListener(ctx context.Context, l net.Listener, handler http.Handler) error {
	serving, end := context.WithCancel(ctx)
	defer end()
	server := &http.Server{
		Handler: handler,
		// The end of serving ends all requests. Streams would go on for ever.
		BaseContext:       func(net.Listener) context.Context { return serving },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	defer context.AfterFunc(ctx, func() { server.Close() })() // Shutdown would wait for streams
	err := server.Serve(netutil.LimitListener(l, maxConns))
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return err
}

// A token is what clients must send.
type token struct {
	value string
	shown string // for persons
}

// clientsToken returns the environment's token or, without one, a new one.
func clientsToken() token {
	if value := os.Getenv(tokenVariable); value != "" {
		return token{value, tokenVariable}
	}
	value := rand.Text()
	return token{value, value}
}

// need serves only clients that send the token.
func (t token) need(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(t.value))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(cmp.Or(given, r.Header.Get("X-Session-API-Key"))))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send the token as Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
