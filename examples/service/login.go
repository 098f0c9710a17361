package main

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// tokenProtocol, followed by the token, is a protocol that the page names when it opens the
// WebSocket of a terminal, beside the terminal's own. A page can set no other header there.
const tokenProtocol = "token."

// requireToken returns a handler that serves next to clients that have the token. They give it in
// the header Authorization ("Bearer …") or as a protocol of a WebSocket. Everybody may load the
// page, because it holds no secret. The page gets the token from the address that the program
// prints: browsers do not send what follows the "#" to any server. It keeps the token in the
// storage of its origin.
//
// The token is in no cookie. A browser sends the cookies of a host to all ports of the host, so any
// other server on this machine would get it.
func requireToken(token string, page, next http.Handler) http.Handler {
	valid := func(s string) bool {
		return subtle.ConstantTimeCompare([]byte(s), []byte(token)) == 1
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok &&
			valid(bearer) {
			next.ServeHTTP(w, r)
			return
		}
		for p := range strings.SplitSeq(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
			if given, ok := strings.CutPrefix(strings.TrimSpace(p), tokenProtocol); ok &&
				valid(given) {
				next.ServeHTTP(w, r)
				return
			}
		}
		if isPage(r) {
			page.ServeHTTP(w, r)
			return
		}
		http.Error(w, "The token is missing: open the address that the program has printed.",
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
