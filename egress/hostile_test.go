package egress

import (
	"bufio"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestGRPC shows what gRPC needs: both ways at once, and the status in a trailer.
func TestGRPC(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	o.mux.HandleFunc("POST /test.Echo/Say", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		message := make([]byte, 5+5)
		for {
			if _, err := io.ReadFull(r.Body, message); err != nil {
				break
			}
			_, _ = w.Write(message)
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set("Grpc-Message", r.Header.Get("Te"))
	})
	b := open(t, Config{Roots: o.roots, Allow: o.rules("POST https://api.test/test.Echo/*")}, "")
	body, write := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "https://api.test/test.Echo/Say",
		body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	res, err := b.client("http", true).Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	for _, text := range []string{"hello", "again"} { // each answer before the next message
		message := append([]byte{0, 0, 0, 0, 5}, text...)
		_, err := write.Write(message)
		require.NoError(t, err)
		got := make([]byte, len(message))
		_, err = io.ReadFull(res.Body, got)
		require.NoError(t, err)
		require.Equal(t, message, got)
	}
	require.NoError(t, write.Close())
	_, err = io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.Header{"Grpc-Status": {"0"}, "Grpc-Message": {"trailers"}}, res.Trailer)
}

// TestECH shows that an encrypted ClientHello hides nothing: TLS is for the name that is seen.
func TestECH(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test", "tls://pinned.test")},
		"")
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	require.NoError(t, err)
	configs := func(public string) []byte { // an ECHConfigList of RFC 9849
		c := []byte{7, 0, 0x20, 0, 32}
		c = append(c, key.PublicKey().Bytes()...)
		c = append(c, 0, 4, 0, 1, 0, 1, 0, byte(len(public)))
		c = append(append(c, public...), 0, 0)
		c = append([]byte{0xfe, 0x0d, 0, byte(len(c))}, c...)
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(c))), c...)
	}
	for _, c := range []struct{ to, public, denied string }{
		{"api.test", "api.test", ""},
		{"api.test", "evil.test", "TLS is for evil.test"},
		{"pinned.test", "evil.test", "TLS is for evil.test"},
	} {
		before := len(b.Denied())
		client := tls.Client(b.connect(c.to+":443"), &tls.Config{ServerName: "evil.test",
			RootCAs: b.roots, EncryptedClientHelloConfigList: configs(c.public)})
		err := client.HandshakeContext(t.Context())
		require.Error(t, err)
		if c.denied == "" {
			require.ErrorAs(t, err, new(*tls.ECHRejectionError))
			continue
		}
		require.Eventually(t, func() bool { return len(b.Denied()) > before }, limit, tick)
		require.Equal(t, c.denied, b.Denied()[before].Denied)
	}
}

// TestAuthority2 shows that HTTP/2's name of the host decides, and that no other goes outside.
func TestAuthority2(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test")}, "")
	for want, pairs := range map[string][]string{
		"200 api.test a": {":authority", "api.test", ":path", "/hello", "host", "evil.test"},
		"200 api.test b": {":authority", "api.test", ":path", "/hello", "host", "api.test"},
		"200 api.test c": {":path", "/hello", "host", "api.test"},
		"421  d":         {":authority", "evil.test", ":path", "/hello", "host", "api.test"},
		"421  e":         {":path", "/hello", "host", "evil.test"},
		"421  f":         {":authority", "api.test:80", ":path", "/hello"},
		"421  g":         {":path", "/hello"},
		"400  h":         {":authority", "api.test", ":path", "*"},
		"reset i":        {":authority", "me@api.test", ":path", "/hello"},
		"421  j":         {":authority", "api.test", ":path", "http://evil.test/hello"},
		"reset k":        {":authority", "api.test", ":path", "/hello", "transfer-encoding", "x"},
		"reset l":        {":authority", "api.test", ":path", "/hello", "connection", "close"},
		"reset m":        {":authority", "api.test", ":path", "/hello", "Upper", "x"},
	} {
		c := b.tlsTo("api.test:443", "h2")
		_, err := io.WriteString(c, http2.ClientPreface)
		require.NoError(t, err)
		f := http2.NewFramer(c, c)
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		require.NoError(t, f.WriteSettings())
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true,
			EndHeaders: true, BlockFragment: fields(append([]string{":method", "GET", ":scheme",
				"https"}, pairs...)...)}))
		status, body := "reset", ""
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				break
			}
			if h, ok := frame.(*http2.MetaHeadersFrame); ok {
				status = h.PseudoValue("status")
			}
			if d, ok := frame.(*http2.DataFrame); ok {
				body += string(d.Data())
			}
			if frame.Header().StreamID == 1 && frame.Header().Flags&http2.FlagDataEndStream != 0 ||
				frame.Header().Type == http2.FrameRSTStream ||
				frame.Header().Type == http2.FrameGoAway {
				break
			}
		}
		require.NoError(t, c.Close())
		expected, _, _ := strings.Cut(want, " ")
		if expected == "reset" { // or an answer of the same kind: none goes outside
			require.NotContains(t, body, "hello by", want)
			continue
		}
		require.Equal(t, expected, status, want)
		if expected == "200" {
			require.Equal(t, "hello by HTTP/2.0, GET api.test", body)
		}
	}
}

// TestLongHeads shows what is too long, in both directions.
func TestLongHeads(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	o.mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 300<<10))
	})
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test", "http://api.test")}, "")
	for _, h2 := range []bool{false, true} {
		status, body := do(t, b.client("http", h2), "GET", "https://api.test/long", nil)
		require.Equal(t, 502, status)
		require.Contains(t, body, "sandshell egress: api.test: ")
	}
	long := "X: " + strings.Repeat("x", 2*headerBytes) + "\r\n"
	for _, c := range []net.Conn{b.tlsTo("api.test:443"), b.connect("api.test:80")} {
		go func() {
			_, _ = io.WriteString(c, "GET /hello HTTP/1.1\r\nHost: api.test\r\n"+long+"\r\n")
		}()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, 431, res.StatusCode)
		// net/http leaves the client half a second to read it. Then it closes the connection.
		require.Eventually(t, func() bool {
			_, err := io.WriteString(c, "x")
			return err != nil
		}, limit, tick)
		_ = c.Close()
	}
}

// TestSlow shows that a request ends outside when the box gives it up, whoever is slow.
func TestSlow(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	arrived, ended := make(chan bool, 1), make(chan error, 1)
	o.mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "answer" {
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		arrived <- true
		_, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			<-r.Context().Done()
			err = r.Context().Err()
		}
		ended <- err
	})
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test")}, "")
	for _, h2 := range []bool{false, true} {
		for _, query := range []string{"", "answer"} {
			for _, slowly := range []bool{false, true} {
				ctx, cancel := context.WithCancel(t.Context())
				var body io.Reader
				reader, writer := io.Pipe()
				if slowly {
					body = reader
					go func() { _, _ = io.WriteString(writer, "x") }()
				}
				r, err := http.NewRequestWithContext(ctx, "POST", "https://api.test/slow?"+query,
					body)
				require.NoError(t, err)
				done := make(chan bool)
				go func() {
					defer close(done)
					if res, err := b.client("http", h2).Do(r); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						res.Body.Close()
					}
				}()
				<-arrived
				cancel()
				require.Error(t, <-ended)
				reader.Close() // net/http waits for what it reads from there
				<-done
			}
		}
	}
}

// TestExpect shows that 100 Continue is for what is allowed.
func TestExpect(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test/echo")}, "")
	for path, want := range map[string][]int{"/echo": {100, 200}, "/hello": {403}} {
		c := b.tlsTo("api.test:443")
		r := bufio.NewReader(c)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\n"+
			"Expect: 100-continue\r\n\r\n", path)
		for _, status := range want {
			res, err := http.ReadResponse(r, nil)
			require.NoError(t, err)
			require.Equal(t, status, res.StatusCode, path)
			if status == 100 {
				_, err = io.WriteString(c, "hello")
				require.NoError(t, err)
				continue
			}
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, status == 200, strings.HasSuffix(string(body), "hello"))
		}
		require.NoError(t, c.Close())
	}
}

// TestSpellings shows that no way to write a path or an address gets around a rule.
func TestSpellings(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	var reached atomic.Int64
	local := tcpServer(t, func(net.Conn) { reached.Add(1) })
	_, port, err := net.SplitHostPort(local)
	require.NoError(t, err)
	o.mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	b := open(t, Config{Roots: o.roots, Allow: append(o.rules("https://ro.test/hello",
		"http://ro.test/hello"), Rules("*:"+port)...)}, "")
	for _, path := range []string{"/hello;x", "/hello%2f", "/hello%2F..", "/hel\\lo", "/hello%5c..",
		"/héllo", "/hello%00", "/./hello", "/hello/.", "/hello/..", "/%68ello", "/hello%20",
		"/hello/",
		"//hello", "/x/../hello", "/hello#/x", "/HELLO", "/%u0068ello", "/hello\x7f", "/hello\t",
		"/h\xc0\xaeello", "/hello%", "http://ro.test/x"} {
		for _, c := range []net.Conn{b.tlsTo("ro.test:443"), b.connect("ro.test:80")} {
			status, body := exchange(t, c, "GET "+path+" HTTP/1.1\r\nHost: ro.test\r\n\r\n")
			require.Contains(t, []int{400, 403}, status, "%q: %s", path, body)
			require.NoError(t, c.Close())
		}
	}
	status, body := exchange(t, b.tlsTo("ro.test:443"),
		"GET /hello?/../x;%2f HTTP/1.1\r\nHost: ro.test\r\n\r\n")
	require.Equal(t, 200, status, body)
	for _, host := range []string{"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1",
		"0177.0.0.1", "017700000001", "127.0.0.1.", "[::1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[64:ff9b::7f00:1]", "[::]", "0", "0.0.0.0",
		"①②⑦.0.0.1", "127。0。0。1", "%31%32%37.0.0.1", "localhost", "LOCALHOST.", "[::1%25lo]",
		"me@127.0.0.1", "ro.test@127.0.0.1", "127.0.0.1#.ro.test", "127.0.0.1\\.ro.test"} {
		at := host + ":" + port
		for method, target := range map[string]string{"CONNECT": at, "GET": "http://" + at + "/"} {
			c := b.dial()
			r := bufio.NewReader(c)
			fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, target)
			res, err := http.ReadResponse(r, &http.Request{Method: method})
			require.NoError(t, err, "%s %s", method, target)
			if res.StatusCode == 200 { // of CONNECT, behind which comes the refusal
				fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", at)
				res, err = http.ReadResponse(r, nil)
				require.NoError(t, err, "%s %s", method, target)
			}
			require.Contains(t, []int{400, 403}, res.StatusCode, "%s %s", method, target)
			require.NoError(t, c.Close())
		}
	}
	require.Zero(t, reached.Load())
}

// TestReflected shows that the value comes back in no form in which servers write what they got.
func TestReflected(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	o.mux.HandleFunc("/reflect", func(w http.ResponseWriter, r *http.Request) {
		value := r.Header.Get("X-Key")
		forms := []string{value, strings.ReplaceAll(jsonEscape(value), "/", `\/`)}
		for _, escape := range escapes {
			forms = append(forms, escape(value))
		}
		w.Header().Set("Location", "https://evil.test/?key="+forms[2+1])
		for i, f := range forms {
			w.Header().Add("Set-Cookie", fmt.Sprintf("c%d=%s; Path=/", i, f))
			w.Header().Add("X-Echo", f)
		}
		w.Header().Set("Etag", `"`+value+`"`)
		w.Header().Set("Trailer", "X-End")
		w.WriteHeader(302)
		for _, f := range forms {
			for i := range f {
				_, _ = io.WriteString(w, f[i:i+1])
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, "\n")
		}
		w.Header().Set("X-End", strings.Join(forms, " "))
	})
	b, placeholder := secretly(t, o, Secret{}, constant)
	for _, h2 := range []bool{false, true} {
		c := b.client("http", h2)
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://api.test/reflect", nil)
		require.NoError(t, err)
		r.Header.Set("X-Key", placeholder)
		res, err := c.Transport.RoundTrip(r)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 302, res.StatusCode)
		all := fmt.Sprint(res.Header, res.Trailer, string(body))
		require.NotContains(t, all, "real")
		require.NotContains(t, all, "value")
		require.Contains(t, res.Header.Get("Location"), "key="+placeholder)
		require.GreaterOrEqual(t, strings.Count(string(body), placeholder), len(escapes)+2)
		require.Contains(t, res.Trailer.Get("X-End"), placeholder)
	}
}
