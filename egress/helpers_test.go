package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// TestMain runs the tests. In a box, this program is one that asks for what its variable names, or
// measures it.
func TestMain(m *testing.M) {
	if what, where, ok := strings.Cut(os.Getenv("EGRESS_TEST_MEASURE"), " "); ok {
		if err := measure(what, where); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	if url := os.Getenv("EGRESS_TEST_GET"); url != "" {
		res, err := http.Get(url)
		if err == nil {
			defer res.Body.Close()
			_, err = io.Copy(os.Stdout, res.Body)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	dockertest.Main(m)
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func hostPort(host string, port int) string { return fmt.Sprintf("%s:%d", host, port) }

// An outside is what is outside: a server of HTTP, and the same in TLS, whatever its name.
type outside struct {
	mux   *http.ServeMux
	roots *x509.CertPool
	plain string // its address
	tls   string

	authority   *authority
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

func newOutside(t testing.TB) *outside {
	t.Helper()
	o := &outside{mux: http.NewServeMux(), roots: x509.NewCertPool()}
	ca, err := newAuthority(nil)
	require.NoError(t, err)
	o.authority = ca
	o.roots.AddCert(ca.cert)
	plain := httptest.NewServer(o.mux)
	secure := httptest.NewUnstartedServer(o.mux)
	secure.EnableHTTP2 = true
	o.certificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return ca.certificateOf(h.ServerName)
	}
	secure.TLS = &tls.Config{GetCertificate: o.certificate}
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	o.plain, o.tls = plain.Listener.Addr().String(), secure.Listener.Addr().String()
	o.mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello by %s, %s %s", r.Proto, r.Method, r.Host)
	})
	o.mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		_ = r.Header.Write(w)
		fmt.Fprintf(w, "%s\n", r.URL.RequestURI())
		_, _ = io.Copy(w, r.Body)
	})
	return o
}

// rules returns rules that lead to the outside.
func (o *outside) rules(texts ...string) []Rule {
	rules := Rules(texts...)
	for i := range rules {
		rules[i].To = o.tls
		if rules[i].Scheme == "http" || rules[i].Scheme == "ws" {
			rules[i].To = o.plain
		}
	}
	return rules
}

// A boxEnd is what a box has: an exit, and the address of its proxy.
type boxEnd struct {
	*Exit
	t       testing.TB
	address string
	roots   *x509.CertPool
	mu      sync.Mutex
	events  []Event
}

// open makes a gate with the Config and an exit, and closes both when the test ends.
func open(t testing.TB, c Config, token string) *boxEnd {
	t.Helper()
	b := &boxEnd{t: t, roots: x509.NewCertPool()}
	also := c.Log
	c.Log = func(e Event) {
		b.mu.Lock()
		b.events = append(b.events, e)
		b.mu.Unlock()
		if also != nil {
			also(e)
		}
	}
	g, err := New(c)
	require.NoError(t, err)
	b.Exit, err = g.newExit("Box", token, nil)
	require.NoError(t, err)
	require.NoError(t, g.add(b.Exit))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- b.serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-served
		require.NoError(t, g.Close())
	})
	b.address = l.Addr().String()
	b.roots.AppendCertsFromPEM(b.ca.pem())
	return b
}

// last returns the last Event, of which there are so many.
func (b *boxEnd) last(count int) Event {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.events) >= count
	}, limit, tick)
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Len(b.t, b.events, count)
	return b.events[count-1]
}

// client returns a client that uses the proxy: scheme http or socks5.
func (b *boxEnd) client(scheme string, h2 bool) *http.Client {
	proxy := &url.URL{Scheme: scheme, Host: b.address}
	if b.token != "" {
		proxy.User = url.UserPassword(tokenUser, b.token)
	}
	t := &http.Transport{Proxy: http.ProxyURL(proxy), ForceAttemptHTTP2: h2,
		TLSClientConfig: &tls.Config{RootCAs: b.roots}}
	b.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// do returns the status and the body of an answer.
func do(t testing.TB, c *http.Client, method, url string, body io.Reader,
	header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := c.Do(r)
	require.NoError(t, err, "%s %s", method, url)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

// dial connects to the proxy.
func (b *boxEnd) dial() net.Conn {
	b.t.Helper()
	c, err := net.Dial("tcp", b.address)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { c.Close() })
	return c
}

// connect opens a connection by CONNECT.
func (b *boxEnd) connect(to string) net.Conn {
	b.t.Helper()
	c := b.dial()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	line := make([]byte, len("HTTP/1.1 200 OK\r\n\r\n"))
	_, err := io.ReadFull(c, line)
	require.NoError(b.t, err)
	require.Equal(b.t, "HTTP/1.1 200 OK\r\n\r\n", string(line))
	return c
}

// tlsTo opens TLS by CONNECT.
func (b *boxEnd) tlsTo(to string, protocols ...string) *tls.Conn {
	b.t.Helper()
	host, _, _ := net.SplitHostPort(to)
	c := tls.Client(b.connect(to), &tls.Config{ServerName: host, RootCAs: b.roots,
		NextProtos: protocols})
	require.NoError(b.t, c.HandshakeContext(b.t.Context()))
	return c
}

// exchange sends text and returns the status and body of the answer; status 0 means that the
// connection was closed without one.
func exchange(t testing.TB, c net.Conn, text string) (int, string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, res.Status + "\n" + string(body)
}

// tcpServer serves each connection by f, and returns its address.
func tcpServer(t testing.TB, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer c.Close()
				stop := context.AfterFunc(t.Context(), func() { c.Close() })
				defer stop()
				f(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wait.Wait()
	})
	return l.Addr().String()
}

// A syncBuffer may be written and read concurrently.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// clientFor returns a client of TLS on a connection.
func clientFor(c net.Conn, host string, roots *x509.CertPool) *tls.Conn {
	return tls.Client(c, &tls.Config{ServerName: host, RootCAs: roots})
}

// nameServer starts a name server that gives each name the address that f returns for its question
// of that number. It returns a resolver that asks it, and how many questions for addresses of IPv4
// came.
func nameServer(t testing.TB, f func(n int64) [4]byte) (*net.Resolver, *atomic.Int64) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	var asked atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
					Body:   &dnsmessage.AResource{A: f(asked.Add(1) - 1)},
				}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() {
		server.Close()
		<-ended
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}, &asked
}
