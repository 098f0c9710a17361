package service

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
)

// The places of a session key in a request: a header, a parameter of the query, a cookie. In the
// path form, "." and the box's id follow the cookie's name.
const (
	KeyHeader    = "X-Session-API-Key"
	KeyParameter = "session_api_key"
	KeyCookie    = "__Host-session_api_key"
)

// sameKey compares keys in constant time. An empty key equals none.
func sameKey(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// keysOf returns the texts that a request gives as the key of a box. A cookie counts only if
// fromOwnPage says so.
func keysOf(r *http.Request, d destination, scheme string) []string {
	keys := []string{r.Header.Get(KeyHeader), r.URL.Query().Get(KeyParameter)}
	if cookies := r.CookiesNamed(d.keyCookie()); len(cookies) > 0 && fromOwnPage(r, scheme) {
		for _, c := range cookies {
			keys = append(keys, c.Value)
		}
	}
	return keys
}

// keyCookie returns the name of the cookie that has the key. A cookie whose name begins with
// __Host- is sent to all paths. In the path form all boxes are one origin, so each box has a cookie
// of its own name.
func (d destination) keyCookie() string {
	if d.prefix == "" {
		return KeyCookie
	}
	return KeyCookie + "." + d.id
}

// isKeyCookie reports whether a cookie of that name may hold the key of a box.
func isKeyCookie(name string) bool {
	return name == KeyCookie || strings.HasPrefix(name, KeyCookie+".")
}

// fromOwnPage reports whether a request comes from a page of the same origin, or from a person who
// opens the address or follows a link.
//
// A browser adds cookies to the requests of pages of any origin. It sends no Origin with a GET for
// a script, a picture or a frame. SameSite does not help, because the pages of other boxes are of
// the same site. All browsers since 2023 send Sec-Fetch-Site over https and to localhost (W3C,
// Fetch Metadata Request Headers). Not all send it with a WebSocket, which always has an Origin. A
// request that has neither is not from such a browser, and its cookie does not count.
func fromOwnPage(r *http.Request, scheme string) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host || u.Scheme != scheme {
			return false
		}
	}
	switch site {
	case "same-origin", "none":
		return true
	case "":
		return origin != ""
	}
	return r.Method == http.MethodGet &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// removeKey removes the session key from the header, the query, the cookies and the Referer of a
// request.
func removeKey(r *http.Request) {
	r.Header.Del(KeyHeader)
	r.URL.RawQuery = withoutKey(r.URL.RawQuery)
	cookies := r.Header["Cookie"]
	r.Header.Del("Cookie")
	for _, line := range cookies {
		var rest []string
		for c := range strings.SplitSeq(line, ";") {
			if name, _, _ := strings.Cut(c, "="); !isKeyCookie(strings.TrimSpace(name)) {
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

// withoutKey returns a query without the key's parameter. The rest keeps its order and its escapes,
// because servers in boxes may depend on them.
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
