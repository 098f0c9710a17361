package main

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// The protocols that the page asks for when it opens the WebSocket of a terminal: terminalProtocol,
// and the token behind tokenProtocol, because a page can give a WebSocket no other header.
const (
	terminalProtocol = "terminal"
	tokenProtocol    = "token."
)

// loggedIn is the middleware that decides who may ask: whoever has the token, in the header
// Authorization ("Bearer …") or as a WebSocket's protocol. The page itself has no secret in it, so
// everybody may load it. It gets the token from the address that the program prints, behind the
// "#", which browsers send to no server, and keeps it in the storage of its origin.
//
// The token is in no cookie: a browser sends the cookies of a host to all its ports, so any other
// server on this machine would get it.
func loggedIn(token string, page, next http.Handler) http.Handler {
	has := func(s string) bool { return subtle.ConstantTimeCompare([]byte(s), []byte(token)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok &&
			has(bearer) {
			next.ServeHTTP(w, r)
			return
		}
		for p := range strings.SplitSeq(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
			if given, ok := strings.CutPrefix(strings.TrimSpace(p), tokenProtocol); ok &&
				has(given) {
				next.ServeHTTP(w, r)
				return
			}
		}
		if isPage(r) {
			page.ServeHTTP(w, r)
			return
		}
		http.Error(w, "Open the address that the program has printed: it has the token.",
			http.StatusUnauthorized)
	})
}

// isPage reports whether a request is for a file of the page.
func isPage(r *http.Request) bool {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		return true
	}
	f, err := files.Open("page/" + name)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
