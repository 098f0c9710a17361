package duplex

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A front is a proxy before a server. Its log has the panics of its connections.
type front struct {
	url    string
	client *http.Client
	log    lockedBuffer
}

func newFront(t *testing.T) *front {
	mux := http.NewServeMux()
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) {
		duplex(t, w)
		io.WriteString(w, "early") // the request has not been read
		http.NewResponseController(w).Flush()
		io.Copy(io.Discard, r.Body) // to close with bytes unread would reset the connection
	})
	mux.HandleFunc("/unread", func(w http.ResponseWriter, r *http.Request) {
		duplex(t, w)
		io.WriteString(w, "unread") // the answer ends before the request
	})
	mux.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%x", sum.Sum(nil))
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		duplex(t, w)
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Body.Read(buf)
			w.Write(buf[:n])
			http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	})
	behind := httptest.NewServer(mux)
	t.Cleanup(behind.Close)
	target, err := url.Parse(behind.URL)
	require.NoError(t, err)

	f := &front{}
	logger := log.New(&f.log, "", 0)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		Serve(&httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(target)
				if r.URL.Path == "/nobody" {
					p.Out.URL.Host = nobody.Addr().String()
				}
			},
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0),
			Transport:     &http.Transport{DisableKeepAlives: true},
		}, w, r)
	}))
	proxy.Config.ErrorLog = logger
	proxy.Start()
	t.Cleanup(proxy.Close)
	f.url = proxy.URL
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	f.client = &http.Client{Transport: transport}
	return f
}

func duplex(t *testing.T, w http.ResponseWriter) {
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		t.Error(err)
	}
}

// Hundreds of requests on connections that are kept, of all kinds and at once.
func TestServe(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), 6<<10) // 96 KiB: more than one read
	sum := fmt.Sprintf("%x", sha256.Sum256(body))
	var each sync.WaitGroup
	for i := range 8 {
		each.Go(func() {
			for j := range 60 {
				path, status, want := "/late", http.StatusOK, sum
				switch (i + j) % 4 {
				case 1:
					path, want = "/early", "early"
				case 2:
					path, want = "/echo", string(body)
				case 3:
					path, status, want = "/nobody", http.StatusBadGateway, ""
				}
				// Of a body of unknown length, the client sends the end apart from the rest.
				var in io.Reader = bytes.NewReader(body)
				if j%2 == 1 {
					in = io.MultiReader(in)
				}
				gotStatus, got, err := f.post(path, in)
				if err != nil || gotStatus != status || got != want {
					t.Errorf("%s: status %d, %d bytes, %v", path, gotStatus, len(got), err)
				}
			}
		})
	}
	each.Wait()
	require.Empty(t, f.log.String())
}

func (f *front) post(path string, in io.Reader) (status int, body string, err error) {
	r, err := http.NewRequest(http.MethodPost, f.url+path, in)
	if err != nil {
		return 0, "", err
	}
	res, err := f.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// A raw client that ends its request only when it has the whole answer, on one connection.
func TestAnswerBeforeTheRequestEnds(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	for _, path := range []string{"/unread", "/nobody"} {
		for range 100 {
			in, out := io.Pipe()
			go out.Write(make([]byte, 100))
			res, err := f.client.Post(f.url+path, "", in)
			require.NoError(t, err)
			b, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.True(t, res.Close, "the answer must say that it is the last one")
			if path == "/unread" {
				require.Equal(t, "unread", string(b))
			}
			require.NoError(t, res.Body.Close())
			out.Close()
		}
	}
	require.Empty(t, f.log.String())
}

// Both directions of one request go on together.
func TestBothWays(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	for range 100 {
		in, out := io.Pipe()
		first := make(chan error, 1)
		go func() {
			_, err := io.WriteString(out, "0")
			first <- err
		}()
		res, err := f.client.Post(f.url+"/echo", "", in)
		require.NoError(t, err)
		require.NoError(t, <-first)
		buf := make([]byte, 1)
		for i := range 10 {
			_, err := io.ReadFull(res.Body, buf)
			require.NoError(t, err)
			require.Equal(t, string(rune('0'+i)), string(buf))
			_, err = out.Write([]byte{byte('0' + i + 1)})
			require.NoError(t, err)
		}
		require.NoError(t, out.Close())
		rest, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, ":", string(rest))
		require.NoError(t, res.Body.Close())
	}
	require.Empty(t, f.log.String())
}

// Connections whose request was read before the answer are kept: all requests are on one.
func TestKeepsConnections(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for range 50 {
		for _, in := range []io.Reader{nil, bytes.NewReader(make([]byte, 100)),
			io.MultiReader(bytes.NewReader(make([]byte, 100)))} {
			r, err := http.NewRequest(http.MethodPost, f.url+"/late", in)
			require.NoError(t, err)
			require.NoError(t, r.Write(conn))
			res, err := http.ReadResponse(answers, r)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.False(t, res.Close)
		}
	}
	require.Empty(t, f.log.String())
}

// A lockedBuffer is a buffer of several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
