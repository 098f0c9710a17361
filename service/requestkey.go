package service

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Where a request may have its session key: in a header, the query, a cookie.
const (
	KeyHeader    = "X-Session-API-Key"
	KeyParameter = "session_api_key"
	KeyCookie    = "session_api_key"
)

// sameKey compares in constant time. There is no empty key.
func sameKey(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// hasKey reports whether a request has this session key. A browser adds cookies to what a page of any other origin asks for, too: a cookie does not count in
// a request that another origin's page has made.
func hasKey(r *http.Request, key string) bool {
	if sameKey(r.Header.Get(KeyHeader), key) || sameKey(r.URL.Query().Get(KeyParameter), key) {
		return true
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return false
		}
	}
	return slices.ContainsFunc(r.CookiesNamed(KeyCookie), func(c *http.Cookie) bool { return sameKey(c.Value, key) })
}

// removeKey takes the session key out of a request, wherever it is.
func removeKey(r *http.Request) {
	r.Header.Del(KeyHeader)
	r.URL.RawQuery = withoutKey(r.URL.RawQuery)
	cookies := r.Header["Cookie"]
	r.Header.Del("Cookie")
	for _, line := range cookies {
		var rest []string
		for c := range strings.SplitSeq(line, ";") {
			if name, _, _ := strings.Cut(c, "="); strings.TrimSpace(name) != KeyCookie {
				rest = append(rest, strings.TrimSpace(c))
			}
		}
		if len(rest) > 0 {
			r.Header.Add("Cookie", strings.Join(rest, "; "))
		}
	}
	if u, err := url.Parse(r.Header.Get("Referer")); err == nil && u.RawQuery != "" {
		u.RawQuery = withoutKey(u.RawQuery)
		r.Header.Set("Referer", u.String())
	}
}

// withoutKey removes the key's parameter from a query, and leaves the rest as it is: its order and its escapes are the box's business.
func withoutKey(query string) string {
	if query == "" {
		return ""
	}
	var rest []string
	for p := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(p, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != KeyParameter {
			rest = append(rest, p)
		}
	}
	return strings.Join(rest, "&")
}
