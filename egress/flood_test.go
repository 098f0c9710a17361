package egress

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// floodClock serves an Exit on the clock of a bubble. The function that dials calls of the box.
func floodClock(t *testing.T, f func(dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Config{Allow: Rules("api.test")})
		require.NoError(t, err)
		x, err := g.newExit("Box", "", nil)
		require.NoError(t, err)
		require.NoError(t, g.add(x))
		l := make(pipeListener)
		served := make(chan error, 1)
		go func() { served <- x.serve(l) }()
		f(func() net.Conn {
			ours, theirs := net.Pipe()
			l <- theirs
			return ours
		})
		close(l)
		<-served
		require.NoError(t, g.Close())
	})
}

// answeredAtOnce requires that a request is answered, and within 100 ms.
func answeredAtOnce(t *testing.T, dial func() net.Conn) {
	t.Helper()
	at := time.Now()
	c := dial()
	status, _ := exchange(t, c, "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
	require.Equal(t, 403, status)
	require.Less(t, time.Since(at), 100*time.Millisecond)
	require.NoError(t, c.Close())
}

// TestFloods shows that connections that say nothing, or end at once, delay nobody.
func TestFloods(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		floodClock(t, func(dial func() net.Conn) {
			var idle []net.Conn
			for range 600 {
				idle = append(idle, dial())
				time.Sleep(time.Millisecond)
			}
			answeredAtOnce(t, dial)
			ended := 0
			for i, c := range idle {
				_ = c.SetReadDeadline(time.Now())
				_, err := c.Read(make([]byte, 1))
				if errors.Is(err, io.EOF) {
					require.Equal(t, ended, i, "an older one is open")
					ended++
				}
			}
			require.GreaterOrEqual(t, ended, 600-defaultConns)
			time.Sleep(firstByte)
			for _, c := range idle {
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				_, err := c.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.EOF)
				require.NoError(t, c.Close())
			}
		})
	})
	t.Run("dead", func(t *testing.T) {
		floodClock(t, func(dial func() net.Conn) {
			for i := range 5000 {
				c := dial()
				if i%2 == 0 {
					go io.WriteString(c, "CONNECT api.test:443 HTTP/1.1\r\n\r\n")
					_, _ = c.Read(make([]byte, 20))
				}
				require.NoError(t, c.Close())
			}
			answeredAtOnce(t, dial)
		})
	})
}

// framesTo opens HTTP/2 to api.test, and returns a writer of frames. reset says how the server has
// ended the connection.
func framesTo(t *testing.T, b *boxEnd) (*http2.Framer, chan http2.ErrCode) {
	t.Helper()
	c := b.tlsTo("api.test:443", "h2")
	_, err := io.WriteString(c, http2.ClientPreface)
	require.NoError(t, err)
	f := http2.NewFramer(c, c)
	require.NoError(t, f.WriteSettings())
	reset := make(chan http2.ErrCode, 1)
	go func() {
		defer close(reset)
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if away, ok := frame.(*http2.GoAwayFrame); ok {
				reset <- away.ErrCode
				return
			}
		}
	}()
	t.Cleanup(func() {
		c.Close()
		<-reset
	})
	return f, reset
}

func fields(pairs ...string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return block.Bytes()
}

// TestHTTP2Floods shows what HTTP/2 adds to the ways to keep a server at work.
func TestHTTP2Floods(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	var now, most atomic.Int64
	o.mux.HandleFunc("/hang", func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		<-r.Context().Done()
		now.Add(-1)
	})
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test")}, "")
	fine := func() {
		t.Helper()
		status, _ := do(t, b.client("http", true), "GET", "https://api.test/hello", nil)
		require.Equal(t, 200, status)
	}
	head := fields(":method", "GET", ":scheme", "https", ":authority", "api.test", ":path", "/hang")

	// Rapid reset: requests that end as soon as they have begun.
	f, _ := framesTo(t, b)
	for id := uint32(1); id < 4_000; id += 2 {
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head,
			EndStream: true, EndHeaders: true}) != nil || f.WriteRSTStream(id,
			http2.ErrCodeCancel) != nil {
			break
		}
	}
	fine()
	require.Eventually(t, func() bool { return now.Load() == 0 }, limit, tick)
	require.LessOrEqual(t, most.Load(), int64(defaultConns))

	// CONTINUATION without an end.
	f, reset := framesTo(t, b)
	require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head}))
	more := fields("x", strings.Repeat("x", 8<<10))
	sent := 0
	for err := error(nil); err == nil; sent += len(more) {
		require.Less(t, sent, 64<<20, "nobody ends it")
		err = f.WriteContinuation(1, false, more)
	}
	<-reset
	fine()

	// Streams: more than allowed are refused, and PING and SETTINGS without an end are no work.
	f, _ = framesTo(t, b)
	for id := uint32(1); id < 2*300; id += 2 {
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head,
			EndStream: true, EndHeaders: true}) != nil {
			break
		}
	}
	fine()
	require.LessOrEqual(t, most.Load(), int64(defaultConns))
}
