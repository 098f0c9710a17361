package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRefused shows what a program reads that asks for what no rule allows.
func TestRefused(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Deny: Rules("*.evil.test"), Allow: o.rules(
		"https://api.test", "GET https://ro.test/hello", "https://*.evil.test")}, "")
	const notListed = " is not on the list of what this sandbox may reach"
	for _, c := range [][3]string{ // method, URL, reason
		{"GET", "https://other.test/", "other.test:443" + notListed},
		{"GET", "http://other.test/", "other.test:80" + notListed},
		{"GET", "http://api.test/hello", "GET http://api.test/hello is not allowed: of this " +
			"host, the sandbox may reach https://api.test\n"},
		{"GET", "https://93.184.216.34/", "93.184.216.34:443" + notListed},
		{"GET", "https://[2a00:1450::1]/", "2a00:1450::1:443" + notListed},
		{"GET", "https://169.254.169.254/latest", "169.254.169.254:443" + notListed},
		{"GET", "http://127.0.0.1:3128/", "127.0.0.1:3128" + notListed},
		{"GET", "http://[::1]:3128/", "::1:3128" + notListed},
		{"POST", "https://ro.test/hello", "may reach GET https://ro.test/hello"},
		{"GET", "https://ro.test/echo", "GET https://ro.test/echo is not allowed"},
		{"GET", "https://a.evil.test/", "must not reach (*.evil.test)"},
		// What is not clean is not what it seems.
		{"GET", "https://ro.test/x/../hello", "is not allowed"},
		{"GET", "https://ro.test//hello", "is not allowed"},
		{"GET", "https://ro.test/hell%6f", "is not allowed: its path is not written plainly"},
		{"GET", "https://ro.test/%2e%2e/hello", "is not allowed"},
		{"GET", "https://ro.test/a%2f..%2fhello", "is not allowed"},
	} {
		proxies := []string{"http", "socks5"}
		if strings.Contains(c[1], ":3128") { // SOCKS5 says no
			proxies = proxies[:1]
		}
		for _, proxy := range proxies {
			status, body := do(t, b.client(proxy, true), c[0], c[1], nil)
			require.Equal(t, 403, status, c)
			require.True(t, strings.HasPrefix(body, "sandshell egress: "), body)
			require.Contains(t, body, c[2])
		}
	}
	require.Len(t, b.Denied(), 30)

	// Other ports: the reason is in the answer to CONNECT, in its phrase too.
	status, body := exchange(t, b.dial(), "CONNECT api.test:22 HTTP/1.1\r\n\r\n")
	require.Equal(t, 403, status)
	require.Equal(t, 2, strings.Count(body, "sandshell egress: tcp://api.test:22 is not allowed"))
	_, err := b.client("socks5", false).Get("https://api.test:22/")
	require.ErrorContains(t, err, "connection not allowed by ruleset")
}

// TestHostDecides shows that a connection is for one host, whatever its requests say.
func TestHostDecides(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test", "http://api.test",
		"https://b.test")}, "")
	for _, c := range []struct {
		head   string
		status int
	}{
		{"GET /hello HTTP/1.1\r\nHost: api.test\r\n", 200},
		{"GET /hello HTTP/1.1\r\nHost: API.test.:443\r\n", 200},
		{"GET /hello HTTP/1.1\r\nHost: evil.test\r\n", 421},
		{"GET /hello HTTP/1.1\r\nHost: b.test\r\n", 421}, // allowed, but not here
		{"GET /hello HTTP/1.1\r\nHost: api.test:80\r\n", 421},
		{"GET /hello HTTP/1.1\r\nHost: api.test@evil.test\r\n", 400},
		{"GET /hello HTTP/1.1\r\nHost:\r\n", 421},
		{"GET https://evil.test/hello HTTP/1.1\r\nHost: api.test\r\n", 421},
		{"GET https://api.test/hello HTTP/1.1\r\nHost: evil.test\r\n", 200}, // the URL's
		{"GET /hello HTTP/1.1\r\nHost: api.test\r\nHost: evil.test\r\n", 400},
		{"GET /hello HTTP/1.1\r\n", 400},
		{"CONNECT evil.test:443 HTTP/1.1\r\nHost: api.test\r\n", 400},
		{"OPTIONS * HTTP/1.1\r\nHost: api.test\r\n", 400},
	} {
		status, body := exchange(t, b.tlsTo("api.test:443"), c.head+"\r\n")
		require.Equal(t, c.status, status, c.head)
		if status == 200 {
			require.Contains(t, body, "GET api.test")
		}
	}
	// A proxy's client: the URL decides, in each request of a connection.
	plain := b.dial()
	r := bufio.NewReader(plain)
	for url, want := range map[string]int{"http://api.test/hello": 200, "http://evil.test/": 403,
		"http://b.test/": 403, "https://api.test/": 400, "/hello": 400, "http://me@api.test/": 400,
		"ftp://api.test/": 400, "http://0x7f.1/": 400} {
		fmt.Fprintf(plain, "GET %s HTTP/1.1\r\nHost: evil.test\r\n\r\n", url)
		res, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, want, res.StatusCode, "%s: %s", url, body)
	}
	// HTTP/2
	c := b.client("http", true)
	for host, want := range map[string]int{"api.test": 200, "evil.test": 421, "b.test": 421} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://api.test/hello", nil)
		require.NoError(t, err)
		r.Host = host
		res, err := c.Do(r)
		require.NoError(t, err)
		require.Equal(t, 2, res.ProtoMajor)
		require.Equal(t, want, res.StatusCode)
		require.NoError(t, res.Body.Close())
	}
	// TLS for another host than the connection's
	before := len(b.Denied())
	conn := b.connect("api.test:443")
	require.Error(t, clientFor(conn, "evil.test", b.roots).Handshake())
	require.Eventually(t, func() bool { return len(b.Denied()) > before }, limit, tick)
	require.Equal(t, "TLS is for evil.test", b.Denied()[before].Denied)
}

// TestSmuggling shows that what two servers may read differently is refused, or is read once here
// and written anew. The server outside counts what it gets.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	var seen atomic.Int64
	o.mux.HandleFunc("/secret", func(http.ResponseWriter, *http.Request) { seen.Add(1) })
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test/echo",
		"http://api.test/echo")}, "")
	const smuggled = "GET /secret HTTP/1.1\r\nHost: api.test\r\n\r\n"
	const post = "POST /echo HTTP/1.1\r\nHost: api.test\r\n"
	for _, request := range []string{
		post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		post + "Content-Length: 0\r\nContent-Length: 60\r\n\r\n" + smuggled,
		post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
		post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled,
		post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + smuggled,
		post + "Content-Length: +60\r\n\r\n" + smuggled,
		post + " Content-Length: 60\r\n\r\n" + smuggled,
		post + "X: a\nContent-Length: 60\r\n\r\n" + smuggled,
		post + "Transfer-Encoding: chunked\r\n\r\n0;\n\r\n" + smuggled,
		post + "Content-Length: 0\r\n\r\n" + smuggled,
		post + "X: \x00\r\n\r\n" + smuggled,
		"GET /echo HTTP/1.1\r\nHost: api.test\r\nUpgrade: h2c\r\nConnection: Upgrade, " +
			"HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n" + smuggled,
		"GET /echo HTTP/1.1\r\nHost: api.test\r\nConnection: Host, X\r\nX: 1\r\n\r\n" + smuggled,
		"GET gopher://api.test/echo HTTP/1.1\r\nHost: api.test\r\n\r\n" + smuggled,
		"GET /echo HTTP/0.9\r\n\r\n" + smuggled,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + smuggled,
	} {
		for _, c := range []net.Conn{b.tlsTo("api.test:443"), b.connect("api.test:80")} {
			_, err := io.WriteString(c, request+strings.Replace(smuggled, "1.1\r\n",
				"1.1\r\nConnection: close\r\n", 1))
			require.NoError(t, err)
			answers, err := io.ReadAll(c)
			if err == nil {
				require.NotEmpty(t, answers, "%q", request)
			}
			require.NotContains(t, strings.ToLower(string(answers)), "upgrade:")
			require.NoError(t, c.Close())
		}
	}
	require.Zero(t, seen.Load())
	for _, e := range b.Denied() {
		require.NotEqual(t, "/echo", e.Path, "%+v", e)
	}
}

// TestGarbage shows that other protocols get nowhere on the ports of HTTP.
func TestGarbage(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Allow: o.rules("api.test")}, "")
	for _, text := range []string{"SSH-2.0-x\r\n", "\x00\x01\x02\x03", "\r\n\r\n", "{}\n",
		"\x16\x03\x01\x00\x02\x01\x00", "\x80\x2e\x01\x00\x02"} {
		for _, c := range []net.Conn{b.connect("api.test:443"), b.connect("api.test:80"),
			b.dial()} {
			_, err := io.WriteString(c, text)
			require.NoError(t, err)
			require.NoError(t, c.(*net.TCPConn).CloseWrite())
			_, err = io.ReadAll(c) // it ends; of TLS by an alert, of "\r\n" by 400
			if err != nil {
				require.ErrorContains(t, err, "reset")
			}
		}
	}
	for _, text := range []string{
		"CONNECT api.test:443\r\nX: y HTTP/1.1\r\n\r\n", "CONNECT api.test HTTP/1.1\r\n\r\n",
		"CONNECT api.test:0 HTTP/1.1\r\n\r\n", "CONNECT /x HTTP/1.1\r\n\r\n",
		"CONNECT api.test\x00.evil.test:443 HTTP/1.1\r\n\r\n", "CONNECT 127.1:443 HTTP/1.1\r\n\r\n",
		"CONNECT 2130706433:80 HTTP/1.1\r\n\r\n", "CONNECT [fe80::1%25lo]:443 HTTP/1.1\r\n\r\n",
		"CONNECT api.test:443 HTTP/1.1\r\nX: " + strings.Repeat("x", headerBytes) + "\r\n\r\n",
	} {
		status, body := exchange(t, b.dial(), text)
		require.Equal(t, 400, status, "%.60q: %s", text, body)
	}
	socks := func(address string) string { return "\x05\x01\x00\x05\x01\x00" + address }
	for _, text := range []string{socks("\x03\x05127.1\x01\xbb"), socks("\x03\x00\x01\xbb"),
		socks("\x03\x03a\nb\x01\xbb"), socks("\x09"), socks("\x01\x01\x02\x03\x04\x00\x00"),
		"\x05\x01\x02", "\x05\x00", "\x05\x01\x00\x05\x02\x00\x01\x01\x02\x03\x04\x01\xbb",
		"\x05\x01\x00\x05\x03\x00\x01\x01\x02\x03\x04\x01\xbb"} {
		c := b.dial()
		_, err := io.WriteString(c, text)
		require.NoError(t, err)
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		if len(answer) > 3 {
			require.NotZero(t, answer[3], "%q", text)
		}
	}
}

// TestPrivate shows that a rule for a name does not lead to this machine or its networks.
func TestPrivate(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	_, port, err := net.SplitHostPort(tcpServer(t, func(net.Conn) { reached.Add(1) }))
	require.NoError(t, err)
	var allow []string
	hosts := []string{"localhost", "127.0.0.1", "[::1]", "169.254.169.254", "10.0.0.1",
		"0.0.0.0", "[::ffff:127.0.0.1]"}
	for _, host := range hosts {
		allow = append(allow, host+":"+port, "tcp://"+host+":1"+port[1:])
	}
	b := open(t, Config{Allow: Rules(allow...)}, "")
	for _, host := range hosts {
		for _, scheme := range []string{"http", "https"} {
			status, body := do(t, b.client("http", false), "GET",
				fmt.Sprintf("%s://%s:%s/", scheme, host, port), nil)
			require.Equal(t, 403, status, "%s: %s", host, body)
			require.Contains(t, body, "it has no public address")
		}
		status, body := exchange(t, b.dial(), fmt.Sprintf("CONNECT %s:1%s HTTP/1.1\r\n\r\n", host,
			port[1:]))
		require.Equal(t, 403, status, body)
		require.Contains(t, body, "it has no public address")
	}
	require.Zero(t, reached.Load())
	for _, e := range b.Denied() {
		require.NotEmpty(t, e.Denied)
	}
}

// TestRebinding shows that no name server can lead to a private address, however it answers: the
// address that is dialed is the one that is checked.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	_, port, err := net.SplitHostPort(tcpServer(t, func(net.Conn) { reached.Add(1) }))
	require.NoError(t, err)
	var local atomic.Bool
	names, asked := nameServer(t, func(n int64) [4]byte {
		if n%2 == 0 && !local.Load() {
			return [4]byte{169, 254, 169, 254}
		}
		return [4]byte{127, 0, 0, 1}
	})
	b := open(t, Config{Resolver: names, Allow: Rules("rebind.test:" + port)}, "")
	for range 10 {
		status, body := do(t, b.client("http", false), "GET", "http://rebind.test:"+port, nil)
		require.Equal(t, 403, status)
		require.Contains(t, body, "rebind.test: it has no public address")
	}
	require.Zero(t, reached.Load())
	require.GreaterOrEqual(t, asked.Load(), int64(10))

	// Nothing is looked up for a name that no rule allows: names are no way out.
	before := asked.Load()
	status, _ := do(t, b.client("http", false), "GET", "http://key.evil.test/", nil)
	require.Equal(t, 403, status)
	require.Equal(t, before, asked.Load())

	// A rule with Private allows it.
	local.Store(true)
	require.NoError(t, b.gate.SetRules([]Rule{{Scheme: "tcp", Host: "rebind.test",
		Ports: []int{atoi(t, port)}, Private: true}}, nil))
	b.connect("rebind.test:" + port)
}
