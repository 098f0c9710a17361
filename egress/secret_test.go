package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

const theValue = `sk-the/real+"value"\1` // each escape changes it

// secretly opens an exit with a secret API_KEY for api.test, and returns its placeholder. The
// function returns the value.
func secretly(t *testing.T, o *outside, s Secret, value func() (string, error)) (*boxEnd, string) {
	t.Helper()
	s.Env, s.Prefix = "API_KEY", "sk-"
	s.Value = func(context.Context) (string, error) { return value() }
	if s.Hosts == nil {
		s.Hosts = []string{"api.test"}
	}
	var log syncBuffer
	b := open(t, Config{Roots: o.roots, Secrets: []Secret{s}, Log: JSONL(&log), Allow: o.rules(
		"https://api.test", "http://api.test", "wss://api.test", "https://other.test")}, "")
	t.Cleanup(func() {
		for _, part := range []string{"the/real", "the%2Freal", "dGhlL3JlYWw"} {
			require.NotContains(t, log.String(), part)
		}
	})
	require.Regexp(t, "^sk-sandshell[a-z0-9]{26}$", b.swaps[0].placeholder)
	return b, b.swaps[0].placeholder
}

func constant() (string, error) { return theValue, nil }

// TestSecret shows that the value goes where it may, and that the placeholder comes back.
func TestSecret(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	var got atomic.Value // the request's header, query and body
	o.mux.HandleFunc("/all", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got.Store([]string{r.Header.Get("Authorization"), r.URL.Query().Get("key"), string(text)})
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Trailer", "X-End")
		w.Header().Set("Content-Length", "")
		w.Header().Del("Content-Length")
		all := fmt.Sprint(got.Load(), r.URL.RawQuery)
		for i := range all { // each byte by itself
			_, _ = io.WriteString(w, all[i:i+1])
			if i%7 == 0 {
				w.(http.Flusher).Flush()
			}
		}
		w.Header().Set("X-End", r.Header.Get("Authorization"))
	})
	b, placeholder := secretly(t, o, Secret{In: Header | Query | Body}, constant)
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+password))
	}
	for i, c := range []struct {
		header, query, kind, body string
		want                      []string
	}{
		{header: "Bearer " + placeholder, want: []string{"Bearer " + theValue, "", ""}},
		{header: basic(placeholder), want: []string{basic(theValue), "", ""}},
		{query: placeholder, want: []string{"", theValue, ""}},
		{kind: "application/json", body: `{"key":"` + placeholder + `"}`,
			want: []string{"", "", `{"key":"sk-the/real+\"value\"\\1"}`}},
		{kind: "application/x-www-form-urlencoded", body: "a=" + placeholder,
			want: []string{"", "", "a=sk-the%2Freal%2B%22value%22%5C1"}},
		{body: placeholder + placeholder, want: []string{"", "", theValue + theValue}},
		{header: "none", want: []string{"none", "", ""}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://api.test/all?key="+
			c.query, strings.NewReader(c.body))
		require.NoError(t, err)
		r.Header.Set("Authorization", c.header)
		r.Header.Set("Content-Type", c.kind)
		res, err := b.client("http", i%2 == 0).Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 200, res.StatusCode, "%s", text)
		require.Equal(t, c.want, got.Load(), i)
		require.Equal(t, c.header, res.Header.Get("X-Echo"))
		require.Equal(t, c.header, res.Trailer.Get("X-End"))
		require.Equal(t, fmt.Sprint([]string{c.header, c.query, c.body}, "key="+c.query),
			string(text))
		e := b.last(i + 1)
		require.Equal(t, c.header != "none", len(e.Secrets) == 1, e)
	}
	status, body := do(t, b.client("http", true), "POST", "https://api.test/all",
		strings.NewReader(strings.Repeat("x", mostBody+1)))
	require.Equal(t, 413, status, body)
}

// TestSecretRefused shows where the value does not go.
func TestSecretRefused(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	value := constant
	b, placeholder := secretly(t, o, Secret{Hosts: []string{"POST https://api.test/echo"}},
		func() (string, error) { return value() })
	bearer := "Authorization: Bearer " + placeholder
	client := b.client("http", true)
	for _, c := range [][3]string{
		{"GET", "https://other.test/echo", "the secret API_KEY does not go to GET https://other."},
		{"POST", "http://api.test/echo", "does not go to POST http://api.test/echo"},
		{"GET", "https://api.test/echo", "does not go to GET https://api.test/echo"},
		{"POST", "https://api.test/hello", "does not go to POST https://api.test/hello"},
		{"POST", "https://api.test/x/../echo", "does not go to"},
		{"POST", "https://api.test/echo?q=" + placeholder, "does not go into the query"},
	} {
		status, body := do(t, client, c[0], c[1], nil, bearer)
		require.Equal(t, 403, status, c)
		require.Contains(t, body, c[2])
		e := b.Denied()[len(b.Denied())-1]
		require.Contains(t, e.Denied, c[2])
		require.Empty(t, e.Secrets)
	}
	_, res, err := websocket.Dial(t.Context(), "wss://api.test/echo", &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: http.Header{"Authorization": {placeholder}}})
	require.Error(t, err)
	require.Equal(t, 403, res.StatusCode)
	status, body := do(t, b.client("http", false), "POST", "https://api.test/echo", nil,
		"Connection: Authorization", bearer)
	require.Equal(t, 200, status)
	require.NotContains(t, body, "Authorization") // a header of the connection goes no further

	for _, f := range []func() (string, error){
		func() (string, error) { return "", errors.New("the vault is sealed") },
		func() (string, error) { return "short", nil },
		func() (string, error) { return "with a\nline end", nil },
		func() (string, error) { panic("oops") },
	} {
		value = f
		status, body := do(t, client, "POST", "https://api.test/echo", nil, bearer)
		require.Equal(t, 502, status)
		require.Equal(t, "sandshell egress: the secret API_KEY has no value\n", body)
	}
	require.Contains(t, b.Denied()[len(b.Denied())-4].Error, "the vault is sealed")
}

// TestSecretTricks shows what a program tries to see the value.
func TestSecretTricks(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	var kept atomic.Value
	o.mux.HandleFunc("/keep", func(w http.ResponseWriter, r *http.Request) {
		kept.Store(r.Header.Get("Authorization"))
		for _, status := range []int{103, 103} {
			w.Header().Set("Link", r.Header.Get("Authorization"))
			w.WriteHeader(status)
		}
	})
	o.mux.HandleFunc("/kept", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader(kept.Load().(string)))
	})
	o.mux.HandleFunc("/encoded", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.Header.Get("X-Encoding"))
		_, _ = io.WriteString(w, "?")
	})
	o.mux.HandleFunc("/part", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, kept.Load().(string)[:9])
	})
	value := theValue
	b, placeholder := secretly(t, o, Secret{}, func() (string, error) { return value, nil })
	client := b.client("http", true)
	status, body := do(t, client, "GET", "https://api.test/hello", nil, "Range: bytes=0-4")
	require.Equal(t, 200, status, body)
	status, _ = do(t, client, "GET", "https://api.test/keep", nil,
		"Authorization: Bearer "+placeholder)
	require.Equal(t, 200, status)
	// A later request, without the placeholder, in pieces, after a rotation.
	value = "the-new-value"
	for _, headers := range [][]string{nil, {"Range: bytes=0-9"},
		{"Range: bytes=9-12", "If-Range: x"}, {"Authorization: " + placeholder}} {
		status, body := do(t, client, "GET", "https://api.test/kept", nil, headers...)
		require.Equal(t, 200, status)
		require.Equal(t, "Bearer "+placeholder, body)
	}
	for _, path := range []string{"encoded", "part"} {
		for _, encoding := range []string{"gzip", "br", "x"} {
			status, body := do(t, client, "GET", "https://api.test/"+path, nil,
				"Accept-Encoding: "+encoding, "X-Encoding: "+encoding)
			require.Equal(t, 502, status)
			require.Contains(t, body, "encoded or in parts")
		}
	}
	status, _ = do(t, client, "GET", "https://api.test/encoded", nil, "X-Encoding: identity")
	require.Equal(t, 200, status)

	// A server that breaks HTTP, so that its answer becomes an error.
	rude := tcpServer(t, func(c net.Conn) {
		server := tls.Server(c, &tls.Config{GetCertificate: o.certificate})
		buffer := make([]byte, 4<<10)
		n, _ := server.Read(buffer)
		_, line, _ := strings.Cut(string(buffer[:n]), "Authorization: ")
		line, _, _ = strings.Cut(line, "\r\n")
		fmt.Fprintf(server, "HTTP/x %s\r\n\r\n", line)
	})
	require.NoError(t, b.gate.SetRules([]Rule{{Host: "api.test", To: rude}}, nil))
	value = theValue
	status, body = do(t, client, "GET", "https://api.test/", nil, "Authorization: "+placeholder)
	require.Equal(t, 502, status)
	require.Equal(t, "sandshell egress: api.test: it cannot be reached, or does not speak HTTP\n",
		body)
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Contains(t, b.events[len(b.events)-1].Error, placeholder)
}

// TestReplacing shows that a value is found wherever it is cut, and that nothing else is held back.
func TestReplacing(t *testing.T) {
	t.Parallel()
	forms := []form{{"secret-long", "{1}"}, {"secret", "{2}"}, {"etsecx", "{3}"}}
	for text, want := range map[string]string{
		"":                       "",
		"a secret-long b":        "a {1} b",
		"secretsecret-lon":       "{2}{2}-lon",
		"secsecret-long":         "sec{1}",
		"secre":                  "secre",
		"etsecretsecx":           "et{2}secx",
		"secret-lonsecret-long!": "{2}-lon{1}!",
	} {
		for _, r := range []io.Reader{strings.NewReader(text),
			iotest.OneByteReader(strings.NewReader(text)),
			iotest.DataErrReader(strings.NewReader(text)),
			iotest.HalfReader(strings.NewReader(text))} {
			ended := 0
			out, err := io.ReadAll(&replacing{r: r, forms: forms, ended: func() { ended++ }})
			require.NoError(t, err)
			require.Equal(t, want, string(out))
			require.Equal(t, 1, ended)
		}
	}
	// What cannot begin a value comes at once.
	r, w := io.Pipe()
	defer w.Close()
	go func() { _, _ = io.WriteString(w, "data: x\n\nsecre") }()
	buffer := make([]byte, 100)
	n, err := (&replacing{r: r, forms: forms}).Read(buffer)
	require.NoError(t, err)
	require.Equal(t, "data: x\n\n", string(buffer[:n]))

	big := bytes.Repeat([]byte("secret-long secre"), 100_000)
	out, err := io.ReadAll(&replacing{r: bytes.NewReader(big), forms: forms})
	require.NoError(t, err)
	require.True(t, bytes.Equal(bytes.ReplaceAll(big, []byte("secret-long"), []byte("{1}")), out))
}

func TestSecretConfig(t *testing.T) {
	t.Setenv("EGRESS_TEST_KEY", "12345678")
	good := Secret{Env: "API_KEY", Value: FromEnv("EGRESS_TEST_KEY"), Hosts: []string{"api.test"}}
	change := func(f func(*Secret)) []Secret {
		s := good
		f(&s)
		return []Secret{s}
	}
	for want, secrets := range map[string][]Secret{
		`[0].Env: "A-B" is not the name of a`: change(func(s *Secret) { s.Env = "A-B" }),
		`[0].Env: HTTP_PROXY is set by`:       change(func(s *Secret) { s.Env = "HTTP_PROXY" }),
		`[1].Env: API_KEY is set by`:          {good, good},
		`[0].Prefix: "a b" has more`:          change(func(s *Secret) { s.Prefix = "a b" }),
		`[0].Value: API_KEY has none`:         change(func(s *Secret) { s.Value = nil }),
		`[0].Hosts: API_KEY has none`:         change(func(s *Secret) { s.Hosts = nil }),
		`[0].In: 8 is not made of`:            change(func(s *Secret) { s.In = 8 }),
		`[0].Hosts[0]: no rule of Config.Allow allows https://b.test`: change(func(s *Secret) {
			s.Hosts = []string{"b.test"}
		}),
		`[0].Hosts[0]: no rule of Config.Allow allows https://api.test:8443`: change(
			func(s *Secret) { s.Hosts = []string{"api.test:8443"} }),
		`[0].Hosts[0]: "http://api.test": a secret goes over https only`: change(
			func(s *Secret) { s.Hosts = []string{"http://api.test"} }),
		`[0].Hosts[0]: rule "api.test:x", column 10`: change(func(s *Secret) {
			s.Hosts = []string{"api.test:x"}
		}),
	} {
		_, err := New(Config{Allow: Rules("api.test", "http://b.test"), Secrets: secrets})
		require.ErrorContains(t, err, "egress: Config.Secrets"+want)
	}
	for _, allow := range []string{"*", "*.test", "https://api.test:443"} {
		_, err := New(Config{Allow: Rules(allow), Secrets: []Secret{good}})
		require.NoError(t, err)
	}
	value, err := good.Value(t.Context())
	require.NoError(t, err)
	require.Equal(t, "12345678", value)
	_, err = FromEnv("EGRESS_NO_KEY")(t.Context())
	require.ErrorContains(t, err, "the variable EGRESS_NO_KEY is not set")
}
