package main

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

const tokenCookie = "token"

// loggedIn is the middleware that decides who may ask: whoever has the token, in the header Authorization ("Bearer …") as programs do, or in a cookie as
// browsers do. A browser gets the cookie from the address that the program prints.
func loggedIn(token string, next http.Handler) http.Handler {
	has := func(s string) bool { return subtle.ConstantTimeCompare([]byte(s), []byte(token)) == 1 }
	// A browser adds the cookie to what the page of any other site asks for, too.
	protected := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && has(bearer) {
			next.ServeHTTP(w, r)
			return
		}
		if r.URL.Path == "/" && has(r.URL.Query().Get("token")) {
			http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: 30 * 24 * 3600})
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		if c, err := r.Cookie(tokenCookie); err == nil && has(c.Value) {
			protected.ServeHTTP(w, r)
			return
		}
		http.Error(w, "Open the address that the program has printed: it has the token.", http.StatusUnauthorized)
	})
}
