package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// escapes are the forms in which a value may be sent or shown: as it is, as in URLs, with small
// letters too, in JSON as JavaScript, PHP and Go write it, and in HTML.
var escapes = []func(string) string{plainly, url.QueryEscape, url.PathEscape,
	func(s string) string { return lowerEscapes(url.QueryEscape(s)) },
	func(s string) string { return lowerEscapes(url.PathEscape(s)) },
	jsonEscape,
	func(s string) string { return strings.ReplaceAll(jsonEscape(s), "/", `\/`) },
	func(s string) string {
		return strings.NewReplacer("&", `\u0026`, "<", `\u003c`, ">", `\u003e`).Replace(jsonEscape(s))
	},
	html.EscapeString,
}

// lowerEscapes returns an escaped part of a URL with small letters in its escapes.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

func plainly(s string) string { return s }

// jsonEscape returns the text as it is within a string of JSON.
func jsonEscape(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// mostBody is the largest body that secrets are put into.
const mostBody = 1 << 20

// putIn puts secrets into a request, and takes them out of the answer. It takes them out of all
// answers of a host that has had one, because the host may have kept it.
func (x *Exit) putIn(r *http.Request, w *wish, e *record, next http.RoundTripper) (*http.Response,
	error) {
	if len(x.swaps) == 0 {
		return next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	for _, s := range x.swaps {
		if err := s.putIn(r, w, e); err != nil {
			return nil, err
		}
	}
	var forms []form
	for _, s := range x.swaps {
		if s.at(w) {
			forms = append(forms, s.known()...)
		}
	}
	if len(forms) == 0 {
		return next.RoundTrip(r)
	}
	// A value that is encoded, or comes in pieces, would not be found in the answer.
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Del("Range")
	r.Header.Del("If-Range")
	res, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return takeOut(res, w, forms)
}

// putIn puts the value into a request.
func (s *swap) putIn(r *http.Request, w *wish, e *record) error {
	in, err := s.find(r, w)
	if err != nil || in == 0 {
		return err
	}
	refuse := func(why string) error { return &refusal{http.StatusForbidden, why} }
	switch {
	case w.scheme != "https" && s.at(w):
		return refuse(fmt.Sprintf("the secret %s does not go into WebSockets", s.Env))
	case !s.goes(w):
		return refuse(fmt.Sprintf("the secret %s does not go to %s", s.Env, w.text()))
	case in&^s.In != 0:
		return refuse(fmt.Sprintf("the secret %s does not go into the %s of a request", s.Env,
			map[Place]string{Header: "header", Query: "query"}[in&^s.In&-(in&^s.In)]))
	}
	value, err := s.current(r.Context())
	if err != nil {
		e.Error = fmt.Sprintf("the secret %s has no value: %v", s.Env, err)
		return &refusal{http.StatusBadGateway, fmt.Sprintf("the secret %s has no value", s.Env)}
	}
	e.Secrets = append(e.Secrets, s.Env)
	r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, s.placeholder, url.QueryEscape(value))
	for _, values := range r.Header {
		for i := range values {
			values[i] = s.inHeader(values[i], value)
		}
	}
	if in&Body != 0 {
		s.inBody(r, value)
	}
	return nil
}

// find returns where in a request the placeholder is. A body is read only if the value may go into
// one; r has it afterwards.
func (s *swap) find(r *http.Request, w *wish) (in Place, err error) {
	for _, values := range r.Header {
		for _, v := range values {
			if s.inHeader(v, "") != v {
				in |= Header
			}
		}
	}
	if strings.Contains(r.URL.RawQuery, s.placeholder) {
		in |= Query
	}
	if s.In&Body == 0 || r.Body == nil || !s.goes(w) || r.Header.Get("Content-Encoding") != "" {
		return in, nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, mostBody+1))
	if err != nil {
		return 0, err
	}
	if len(text) > mostBody {
		return 0, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"%s puts secrets into bodies of at most %d bytes", w.host, mostBody)}
	}
	setBody(r, text)
	if bytes.Contains(text, []byte(s.placeholder)) {
		in |= Body
	}
	return in, nil
}

func setBody(r *http.Request, text []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	if len(text) == 0 {
		r.Body = http.NoBody
	}
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", fmt.Sprint(len(text)))
	}
}

// inHeader returns the value of a header with the secret in it. If it is a login of scheme Basic,
// the login is remembered.
func (s *swap) inHeader(header, value string) string {
	if scheme, login, ok := strings.Cut(header, " "); ok && strings.EqualFold(scheme, "Basic") {
		plain, err := base64.StdEncoding.DecodeString(login)
		if err == nil && bytes.Contains(plain, []byte(s.placeholder)) {
			with := base64.StdEncoding.EncodeToString(bytes.ReplaceAll(plain,
				[]byte(s.placeholder), []byte(value)))
			if value != "" {
				s.remember(form{with, login})
			}
			return scheme + " " + with
		}
	}
	return strings.ReplaceAll(header, s.placeholder, value)
}

// inBody puts the value into a body that find has read.
func (s *swap) inBody(r *http.Request, value string) {
	escape := plainly
	switch kind := r.Header.Get("Content-Type"); {
	case strings.Contains(kind, "json"):
		escape = jsonEscape
	case strings.Contains(kind, "x-www-form-urlencoded"):
		escape = url.QueryEscape
	}
	text, _ := io.ReadAll(r.Body) //bounded: find has read it
	setBody(r, bytes.ReplaceAll(text, []byte(s.placeholder), []byte(escape(value))))
}

// takeOut puts placeholders in the place of values, in all of an answer that may have some.
func takeOut(res *http.Response, w *wish, forms []form) (*http.Response, error) {
	encoding := res.Header.Get("Content-Encoding")
	if encoding != "" && !strings.EqualFold(encoding, "identity") ||
		res.StatusCode == http.StatusPartialContent {
		_ = res.Body.Close()
		return nil, &refusal{http.StatusBadGateway, fmt.Sprintf("the answer of %s is encoded or "+
			"in parts, so a secret could not be found in it", w.host)}
	}
	// Of two that begin at the same place, the longer one counts.
	slices.SortStableFunc(forms, func(a, b form) int { return len(b.value) - len(a.value) })
	inHeaders(res.Header, forms)
	inHeaders(res.Trailer, forms)
	if res.StatusCode == http.StatusSwitchingProtocols || res.Body == http.NoBody {
		return res, nil
	}
	res.ContentLength = -1
	res.Header.Del("Content-Length")
	res.Body = body{&replacing{r: res.Body, forms: forms, ended: func() {
		inHeaders(res.Trailer, forms)
	}}, res.Body}
	return res, nil
}

func inHeaders(h http.Header, forms []form) {
	for _, values := range h {
		for i := range values {
			values[i] = withPlaceholders(values[i], forms)
		}
	}
}

// withPlaceholders returns the text without values.
func withPlaceholders(text string, forms []form) string {
	for _, f := range forms {
		text = strings.ReplaceAll(text, f.value, f.placeholder)
	}
	return text
}

// scrub returns the text without the values of any secret.
func (x *Exit) scrub(text string) string {
	for _, s := range x.swaps {
		text = withPlaceholders(text, s.known())
	}
	return text
}
