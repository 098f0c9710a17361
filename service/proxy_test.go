package service

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A front is a Proxy to boxes that have no network and run testdata/server.
type front struct {
	*Service
	client *http.Client // reaches all hosts at the proxy
	a, b   *Info        // two boxes that run
	caps   *Info        // a box whose id cannot be part of a host name
}

func startFront(t testing.TB) *front {
	t.Helper()
	name := uniqueName(t)
	program := filepath.Join(t.TempDir(), "server")
	cmd := exec.Command("go", "build", "-o", program, "./testdata/server")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)

	server := httptest.NewUnstartedServer(nil)
	base := &url.URL{Scheme: "http", Host: strings.Replace(server.Listener.Addr().String(),
		"127.0.0.1", "boxes.localhost", 1), Path: "/at"}
	s := open(t, name, func(o *Config) { o.URL = URLs(base) }, small("web", func(s *Spec) {
		s.Ports = []Port{{"web", 8000}, {"NOBODY", 8001}}
	}))
	server.Config.Handler = Proxy(s, ProxyConfig{URL: base,
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "next")
		})})
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{DialContext: func(ctx context.Context, network,
		_ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	f := &front{Service: s, client: &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
	for id, info := range map[string]**Info{"a-1": &f.a, "b": &f.b, "Caps": &f.caps} {
		*info = startServer(t, s, id, program)
	}
	return f
}

func startServer(t testing.TB, s *Service, id, program string) *Info {
	t.Helper()
	info := start(t, s, StartOptions{ID: id})
	box, err := s.Open(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, box.CopyTo(t.Context(), program, "/tmp/server"))
	_, err = box.Background(t.Context(), "exec /tmp/server 127.0.0.1:8000")
	require.NoError(t, err)
	eventually(t, "the server listens", func() bool {
		conn, err := box.Dial(t.Context(), "tcp", "127.0.0.1:8000")
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	require.Len(t, info.URLs, 2)
	return info
}

// do makes a request to the first port of a box, and returns the answer with its body.
func (f *front) do(t *testing.T, method string, info *Info, path string,
	change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, info.URLs[0].URL+path, nil)
	require.NoError(t, err)
	if change != nil {
		change(r)
	}
	res, err := f.client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(body)
}

func header(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(KeyHeader, key) }
}

func query(key string) func(*http.Request) {
	return func(r *http.Request) { r.URL.RawQuery = KeyParameter + "=" + key }
}

func cookie(key string) func(*http.Request) {
	return func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: KeyCookie, Value: key})
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	f := startFront(t)
	t.Run("Key", f.testKey)
	t.Run("KeyStaysOutside", f.testKeyStaysOutside)
	t.Run("Browser", f.testBrowser)
	t.Run("OtherOrigin", f.testOtherOrigin)
	t.Run("Path", f.testPath)
	t.Run("Cookies", f.testCookies)
	t.Run("NoPort", f.testNoPort)
	t.Run("WebSocket", f.testWebSocket)
	t.Run("Events", f.testEvents)
	t.Run("Duplex", f.testDuplex)
	t.Run("BigAnswers", f.testBigAnswers)
	t.Run("Paused", f.testPaused)   // box b stays paused
	t.Run("Deleted", f.testDeleted) // Caps
}

func (f *front) testKey(t *testing.T) {
	for name, with := range map[string]func(string) func(*http.Request){"header": header,
		"query": query, "cookie": cookie} {
		res, body := f.do(t, "GET", f.a, "request", with(f.a.SessionKey))
		require.Equal(t, 200, res.StatusCode, "%s: %s", name, body)
		for _, key := range []string{"", "wrong", f.b.SessionKey, f.a.SessionKey[1:],
			f.a.SessionKey + "x"} {
			res, refusal := f.do(t, "GET", f.a, "request", with(key))
			require.Equal(t, 401, res.StatusCode, "%s: %q", name, key)
			require.NotContains(t, refusal, "host")
		}
	}
	unknown := &Info{URLs: []URL{{URL: strings.Replace(f.a.URLs[0].URL, "a-1", "unknown", 1)}}}
	_, refusal := f.do(t, "GET", f.a, "request", nil)
	res, same := f.do(t, "GET", unknown, "request", header(f.a.SessionKey))
	require.Equal(t, 401, res.StatusCode)
	require.Equal(t, refusal, same, "the answer does not tell whether a box exists")
}

func (f *front) testKeyStaysOutside(t *testing.T) {
	_, body := f.do(t, "GET", f.a, "request", func(r *http.Request) {
		r.URL.RawQuery = "b=%20&session_api_key=" + f.a.SessionKey + "&a=1"
		header(f.a.SessionKey)(r)
		r.Header.Set("Cookie", "before=1; "+KeyCookie+"="+f.a.SessionKey+"; after=2; "+KeyCookie+
			".Caps="+f.a.SessionKey)
		r.Header.Set("Referer", f.a.URLs[0].URL+"?x=y&session_api_key="+f.a.SessionKey)
		r.Header.Set("X-Forwarded-For", "forged")
	})
	require.NotContains(t, body, f.a.SessionKey)
	var got struct {
		Header    http.Header
		Host, URI string
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	u, err := url.Parse(f.a.URLs[0].URL)
	require.NoError(t, err)
	require.Equal(t, u.Host, got.Host)
	require.Equal(t, "/request?b=%20&a=1", got.URI)
	require.Equal(t, "before=1; after=2", got.Header.Get("Cookie"))
	require.Equal(t, f.a.URLs[0].URL+"?x=y", got.Header.Get("Referer"))
	require.Equal(t, "127.0.0.1", got.Header.Get("X-Forwarded-For"))
	require.Equal(t, u.Host, got.Header.Get("X-Forwarded-Host"))
	require.Equal(t, "http", got.Header.Get("X-Forwarded-Proto"))
}

// testBrowser opens a page with the key in its address, as by a link.
func (f *front) testBrowser(t *testing.T) {
	for _, info := range []*Info{f.a, f.caps} {
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		client := &http.Client{Transport: f.client.Transport, Jar: jar}
		r, err := http.NewRequestWithContext(t.Context(), "GET",
			info.URLs[0].URL+"request?x=1&session_api_key="+info.SessionKey, nil)
		require.NoError(t, err)
		r.Header.Set("Accept", "text/html,*/*")
		r.Header.Set("Sec-Fetch-Site", "none")
		res, err := client.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		require.NoError(t, err)
		require.Equal(t, 200, res.StatusCode)
		require.Equal(t, info.URLs[0].URL+"request?x=1", res.Request.URL.String(),
			"the key is no longer in the address")
		require.NotContains(t, string(body), info.SessionKey)
	}
	r, _ := f.do(t, "GET", f.a, "/evil.example.com", func(r *http.Request) {
		query(f.a.SessionKey)(r)
		r.Header.Set("Accept", "text/html")
	})
	require.Equal(t, "/evil.example.com", r.Header.Get("Location"), "never another host")
	for _, c := range r.Cookies() {
		require.Equal(t, "__Host-session_api_key", c.Name)
		require.True(t, c.Secure && c.Path == "/" && c.Domain == "",
			"a browser takes no other by this name")
		require.True(t, c.HttpOnly)
		require.Equal(t, http.SameSiteLaxMode, c.SameSite)
	}
	require.Len(t, r.Cookies(), 1)
}

// testOtherOrigin makes the requests that browsers make for pages of other origins. A browser adds
// the cookie to all of them.
func (f *front) testOtherOrigin(t *testing.T) {
	own, sibling := strings.TrimSuffix(f.a.URLs[0].URL, "/"),
		strings.TrimSuffix(f.b.URLs[0].URL, "/")
	for _, c := range []struct {
		method, origin, site, mode, dest string
		status                           int
	}{
		{"GET", "", "same-origin", "cors", "empty", 200},
		{"GET", "", "none", "navigate", "document", 200},
		{"GET", "", "same-site", "navigate", "document", 200}, // a link
		{"GET", "", "cross-site", "navigate", "document", 200},
		{"POST", own, "same-origin", "cors", "empty", 200},
		{"GET", own, "", "", "", 200}, // a WebSocket
		{"GET", "", "same-site", "no-cors", "script", 401},
		{"GET", "", "same-site", "no-cors", "image", 401},
		{"GET", "", "same-site", "no-cors", "empty", 401},
		{"GET", "", "same-site", "navigate", "iframe", 401},
		{"GET", "", "cross-site", "navigate", "object", 401},
		{"POST", "", "same-site", "navigate", "document", 401},
		{"GET", "", "unknown", "", "", 401},
		{"GET", "", "", "", "", 401},
		{"GET", sibling, "", "", "", 401},
		{"GET", sibling, "same-origin", "cors", "empty", 401},
		{"GET", strings.Replace(own, "http:", "https:", 1), "same-origin", "cors", "empty", 401},
		{"GET", "null", "same-origin", "cors", "empty", 401},
		{"GET", "http://%", "same-origin", "cors", "empty", 401},
	} {
		set := func(key func(string) func(*http.Request)) func(*http.Request) {
			return func(r *http.Request) {
				key(f.a.SessionKey)(r)
				r.Header.Del("Sec-Fetch-Site")
				for name, value := range map[string]string{"Origin": c.origin,
					"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Sec-Fetch-Dest": c.dest} {
					if value != "" {
						r.Header.Set(name, value)
					}
				}
			}
		}
		res, _ := f.do(t, c.method, f.a, "request", set(cookie))
		require.Equal(t, c.status, res.StatusCode, "%+v", c)
		res, _ = f.do(t, c.method, f.a, "request", set(header))
		require.Equal(t, 200, res.StatusCode, "a page that knows the key: %+v", c)
	}
}

func (f *front) testPath(t *testing.T) {
	require.Contains(t, f.caps.URLs[0].URL, "/at/Caps/web/")
	res, body := f.do(t, "GET", f.caps, "request?x=1", header(f.caps.SessionKey))
	require.Equal(t, 200, res.StatusCode, body)
	var got struct {
		Header http.Header
		URI    string
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, "/request?x=1", got.URI)
	require.Equal(t, "/at/Caps/web", got.Header.Get("X-Forwarded-Prefix"))

	u, err := url.Parse(f.caps.URLs[0].URL)
	require.NoError(t, err)
	asPath := &Info{URLs: []URL{{URL: "http://" + u.Host + "/at/a-1/web/"}}}
	res, _ = f.do(t, "GET", asPath, "request", header(f.a.SessionKey))
	require.Equal(t, 200, res.StatusCode, "the path form is there for all")
	res, _ = f.do(t, "GET", asPath, "request", header(f.caps.SessionKey))
	require.Equal(t, 401, res.StatusCode)

	_, body = f.do(t, "GET", &Info{URLs: []URL{{URL: "http://" + u.Host + "/elsewhere"}}}, "", nil)
	require.Equal(t, "next", body)
}

func (f *front) testCookies(t *testing.T) {
	res, _ := f.do(t, "GET", f.a, "login", header(f.a.SessionKey))
	require.Equal(t, "/app", res.Header.Get("Location"))
	require.Equal(t, []string{"user=zoë; Path=/app; HttpOnly", "plain=1"}, res.Header["Set-Cookie"])
	res, _ = f.do(t, "GET", f.caps, "login", header(f.caps.SessionKey))
	require.Equal(t, "/at/Caps/web/app", res.Header.Get("Location"))
	require.Equal(t, []string{"user=zoë; Path=/at/Caps/web/app; HttpOnly", "plain=1"},
		res.Header["Set-Cookie"])
}

func (f *front) testNoPort(t *testing.T) {
	res, body := f.do(t, "GET", &Info{URLs: []URL{f.a.URLs[1]}}, "", header(f.a.SessionKey))
	require.Equal(t, 502, res.StatusCode)
	require.Contains(t, body, "8001", "found in spite of its capital letters")
	other := &Info{URLs: []URL{{URL: strings.Replace(f.a.URLs[0].URL, "//web-", "//other-", 1)}}}
	res, _ = f.do(t, "GET", other, "", header(f.a.SessionKey))
	require.Equal(t, 404, res.StatusCode)

	r, err := http.NewRequestWithContext(t.Context(), "GET", f.a.URLs[0].URL+"cut", nil)
	require.NoError(t, err)
	header(f.a.SessionKey)(r)
	res, err = f.client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	require.Error(t, err, "an answer that the box has cut is not taken for a whole one")
}

func (f *front) testPaused(t *testing.T) {
	require.NoError(t, f.Pause(t.Context(), "b"))
	res, body := f.do(t, "GET", f.b, "request", header(f.b.SessionKey))
	require.Equal(t, 503, res.StatusCode)
	require.Contains(t, body, "PAUSED")
	res, _ = f.do(t, "GET", f.b, "request", header(f.a.SessionKey))
	require.Equal(t, 401, res.StatusCode)
}

// testDeleted deletes a box in the middle of a connection.
func (f *front) testDeleted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	c, _, err := websocket.Dial(ctx, f.caps.URLs[0].URL+"ws",
		&websocket.DialOptions{HTTPClient: f.client, HTTPHeader: http.Header{
			KeyHeader: {f.caps.SessionKey}}})
	require.NoError(t, err)
	defer c.CloseNow()
	require.NoError(t, c.Write(ctx, websocket.MessageText, []byte("x")))
	_, _, err = c.Read(ctx)
	require.NoError(t, err)
	require.NoError(t, f.Delete(ctx, f.caps.ID))
	_, _, err = c.Read(ctx)
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "the connection has ended with the box")
	res, _ := f.do(t, "GET", f.caps, "request", header(f.caps.SessionKey))
	require.Equal(t, 401, res.StatusCode)
}

// TestProxyDown makes requests while the engine does not answer.
func TestProxyDown(t *testing.T) {
	nowhere, err := client.New(client.WithHost("unix:///no/such/socket"))
	require.NoError(t, err)
	defer nowhere.Close()
	s := open(t, "down", func(o *Config) { o.Place = placeOn(nowhere) }, small("small", nil))
	h := Proxy(s, ProxyConfig{URL: &url.URL{Scheme: "http", Host: "boxes.localhost"}})
	for target, status := range map[string]int{"http://web-a.boxes.localhost/": 503,
		"http://web-.boxes.localhost/": 401, "http://web.boxes.localhost/": 404,
		"http://else/": 404} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", target, nil)
		header(s.idKey("a") + "rest")(r)
		h.ServeHTTP(w, r)
		require.Equal(t, status, w.Code, target)
		require.NotContains(t, w.Body.String(), "socket",
			"only the log says what is wrong with the engine")
		for _, key := range []string{"", "key", s.idKey("b") + "rest"} { // the engine is not asked
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", target, nil)
			header(key)(r)
			h.ServeHTTP(w, r)
			require.NotEqual(t, 503, w.Code, target)
		}
	}
}
