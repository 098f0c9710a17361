package egress

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

const (
	limit = testenv.Limit // within which what happens at once happens
	tick  = 2 * time.Millisecond
)

// TestRequests shows each way to ask: HTTP to a proxy, CONNECT and SOCKS5, HTTP/1.1 and HTTP/2.
func TestRequests(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test", "http://api.test",
		"https://api.test:8443")}, "")
	n := 0
	for _, c := range []struct {
		proxy string
		h2    bool
		url   string
		want  string
		event Event
	}{
		{"http", false, "http://api.test/hello", "hello by HTTP/1.1, GET api.test",
			Event{Via: "http", Scheme: "http", Port: 80, Rule: "http://api.test"}},
		{"http", false, "https://api.test/hello", "hello by HTTP/2.0, GET api.test",
			Event{Via: "connect", Scheme: "https", Port: 443, Rule: "https://api.test"}},
		{"http", true, "https://api.test:8443/hello", "hello by HTTP/2.0, GET api.test:8443",
			Event{Via: "connect", Scheme: "https", Port: 8443, Rule: "https://api.test:8443"}},
		{"socks5", true, "https://API.test./hello", "hello by HTTP/2.0, GET api.test",
			Event{Via: "socks", Scheme: "https", Port: 443, Rule: "https://api.test"}},
		{"socks5", false, "http://api.test/hello", "hello by HTTP/1.1, GET api.test",
			Event{Via: "socks", Scheme: "http", Port: 80, Rule: "http://api.test"}},
	} {
		status, body := do(t, b.client(c.proxy, c.h2), "GET", c.url, nil)
		require.Equal(t, 200, status, c.url)
		require.Equal(t, c.want, body)
		n++
		e := b.last(n)
		require.Positive(t, e.Duration)
		require.Equal(t, int64(len(body)), e.Received)
		c.event.Time, c.event.Duration, c.event.Box = e.Time, e.Duration, "Box-1"
		c.event.Host, c.event.Method, c.event.Path = "api.test", "GET", "/hello"
		c.event.Status, c.event.Received = 200, e.Received
		require.Equal(t, c.event, e)
	}
	client := b.client("http", true)
	big := strings.Repeat("0123456789", 1<<17)
	_, body := do(t, client, "POST", "https://api.test/echo?a=1;b=%zz&&c", strings.NewReader(big))
	require.True(t, strings.HasSuffix(body, "/echo?a=1;b=%zz&&c\n"+big))
	require.NotContains(t, body, "User-Agent: Go-http-client/2.0\r\nUser-Agent")
	require.Equal(t, int64(len(big)), b.last(n+1).Sent)
	require.Empty(t, b.Denied())
}

// TestStreams shows that what a server sends comes at once, and that trailers come.
func TestStreams(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	next := make(chan bool)
	o.mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header().Set("Trailer", "X-End")
		w.WriteHeader(http.StatusEarlyHints)
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
		w.Header().Set("X-End", "3")
	})
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test", "http://api.test")}, "")
	for _, url := range []string{"https://api.test/events", "http://api.test/events"} {
		res, err := b.client("http", true).Get(url)
		require.NoError(t, err)
		require.Empty(t, res.Header.Get("Alt-Svc"))
		r := bufio.NewReader(res.Body)
		for i := range 3 { // each before the next was sent
			line, err := r.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("data: %d\n", i), line)
			_, err = r.ReadString('\n')
			require.NoError(t, err)
			next <- true
		}
		_, err = r.ReadByte()
		require.Equal(t, io.EOF, err)
		require.Equal(t, "3", res.Trailer.Get("X-End"))
		require.NoError(t, res.Body.Close())
	}
}

// TestWebSocket shows that WebSockets need a rule, and what that rule allows.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	o.mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
	b := open(t, Config{Roots: o.roots, Allow: o.rules("wss://api.test", "ws://api.test",
		"https://other.test")}, "")
	for i, url := range []string{"wss://api.test/ws", "ws://api.test/ws"} {
		c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{
			HTTPClient: b.client("http", false)})
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte("hello")))
			_, data, err := c.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, "hello", string(data))
		}
		require.NoError(t, c.Close(websocket.StatusNormalClosure, ""))
		e := b.last(i + 1)
		require.Equal(t, 101, e.Status)
		require.Greater(t, e.Sent, int64(15))
		require.Greater(t, e.Received, int64(15))
	}
	_, res, err := websocket.Dial(t.Context(), "wss://other.test/ws", &websocket.DialOptions{
		HTTPClient: b.client("http", false)})
	require.Error(t, err)
	require.Equal(t, 403, res.StatusCode)
	require.Equal(t, "wss", b.last(3).Scheme)
	status, body := do(t, b.client("http", true), "GET", "https://api.test/hello", nil)
	require.Equal(t, 403, status)
	require.Contains(t, body, "may reach wss://api.test")
}

// TestTunnels shows what nobody looks into.
func TestTunnels(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	database := tcpServer(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "ready\n")
		_, _ = io.Copy(c, c)
		_, _ = io.WriteString(c, "bye\n")
	})
	allow := append(o.rules("tls://pinned.test"), Rule{Scheme: "tcp", Host: "db.test",
		Ports: []int{5432}, To: database})
	b := open(t, Config{Allow: allow}, "")
	talk := func() (net.Conn, *bufio.Reader) {
		c := b.connect("db.test:5432")
		r := bufio.NewReader(c)
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		return c, r
	}
	c, r := talk()
	_, err := io.WriteString(c, "select 1\n")
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "select 1\nbye\n", string(rest))
	e := b.last(1)
	require.Equal(t, "tcp://db.test:5432", e.Rule)
	require.Equal(t, []int64{9, 19}, []int64{e.Sent, e.Received})

	pinned := tls.Client(b.connect("pinned.test:443"), &tls.Config{ServerName: "pinned.test",
		RootCAs: o.roots}) // not our CA: it is the server's own certificate
	status, body := exchange(t, pinned, "GET /hello HTTP/1.1\r\nHost: any\r\n"+
		"Connection: close\r\n\r\n")
	require.Equal(t, 200, status)
	require.Contains(t, body, "GET any")
	require.NoError(t, pinned.Close())
	require.Equal(t, "tls", b.last(2).Scheme)

	fronted := tls.Client(b.connect("pinned.test:443"), &tls.Config{ServerName: "evil.test",
		RootCAs: o.roots})
	require.Error(t, fronted.Handshake())
	require.Equal(t, "TLS is for evil.test", b.last(3).Denied)

	// New rules cut what they do not allow, and leave the rest.
	c, r = talk()
	for _, deny := range []string{"db.test:1", "tls://db.test:1"} {
		require.NoError(t, b.gate.SetRules(allow[1:], Rules(deny)))
		_, err := io.WriteString(c, "hello\n")
		require.NoError(t, err)
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "hello\n", line)
	}
	require.NoError(t, b.gate.SetRules(allow, Rules("GET https://db.test:5432/x")))
	_, err = r.ReadByte()
	require.Error(t, err)
	require.Error(t, b.gate.SetRules(Rules("x y z"), nil))
	require.Error(t, b.Allow("a.test", "ftp://b.test"))
	require.NoError(t, b.gate.SetRules(nil, nil))
	require.NoError(t, b.Allow("https://new.test"))
	require.NotNil(t, b.rules().find(&wish{scheme: "https", host: "new.test", port: 443}))
	require.Len(t, b.rules().allow, 1)
}

// TestToken shows that other programs of a shared machine cannot use a box's proxy.
func TestToken(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test", "http://api.test")},
		"token")
	urls := []string{"http://api.test/hello", "https://api.test/hello"}
	for _, scheme := range []string{"http", "socks5"} {
		for _, url := range urls {
			status, _ := do(t, b.client(scheme, false), "GET", url, nil)
			require.Equal(t, 200, status, scheme+" "+url)
		}
	}
	b.token = "other" // of the clients
	clients := []*http.Client{b.client("http", false), b.client("socks5", false)}
	b.token = ""
	clients = append(clients, b.client("http", false), b.client("socks5", false))
	b.token = "token"
	for i, c := range clients {
		for _, url := range urls {
			res, err := c.Get(url)
			if err == nil {
				require.Equal(t, 407, res.StatusCode, i)
				require.Equal(t, challenge, res.Header.Get("Proxy-Authenticate"))
				res.Body.Close()
			}
			require.True(t, err != nil || !strings.HasPrefix(url, "https:"))
		}
	}
	require.Eventually(t, func() bool { return len(b.Denied()) == 8 }, limit, tick)
	for _, e := range b.Denied() {
		require.Equal(t, needsToken, e.Denied)
	}
}

// TestConcurrently shows many requests at once, and what Close does to those under way.
func TestConcurrently(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	arrived := make(chan bool, 10)
	o.mux.HandleFunc("/hang", func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-r.Context().Done()
	})
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://*.test", "http://*.test")}, "")
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			scheme := []string{"http", "https"}[i%2]
			res, err := b.client([]string{"http", "socks5"}[i%3%2], i%5 == 0).Get(
				fmt.Sprintf("%s://h%d.test/hello", scheme, i))
			if err == nil {
				res.Body.Close()
			}
			if err != nil || res.StatusCode != 200 {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wait.Wait()
	for _, url := range []string{"http://a.test/hang", "https://a.test/hang"} {
		wait.Go(func() {
			res, err := b.client("http", true).Get(url)
			if err == nil {
				res.Body.Close()
			}
		})
		<-arrived
	}
	begin := time.Now()
	require.NoError(t, b.Close())
	require.Less(t, time.Since(begin), shutTime)
	wait.Wait()
	require.NoError(t, b.Close())
	_, err := b.client("http", false).Get("http://a.test/hello")
	require.Error(t, err)
	require.NoError(t, b.gate.Close())
	require.ErrorIs(t, b.gate.add(b.Exit), errClosed)
}

func TestJSONL(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := JSONL(&out)
	log(Event{Host: "a.test", Path: "/\x1b"})
	log(Event{Denied: "why"})
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 3)
	var e Event
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &e))
	require.Equal(t, "/\x1b", e.Path)
	require.NotContains(t, lines[0], "\x1b")
	require.NotContains(t, lines[0], "denied")
}
