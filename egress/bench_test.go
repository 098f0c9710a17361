package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkGet is a GET through the proxy and the same without it, in turns, so that a busy machine
// slows down both. "new" makes a TLS connection for each, "kept" uses one for all, "large" fetches
// 100 MB, and "at-once" makes a hundred connections side by side. It reports the medians and what
// the proxy adds to them.
func BenchmarkGet(b *testing.B) {
	o := newOutside(b)
	large := make([]byte, 100e6)
	o.mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(large)
	})
	box := open(b, Config{Roots: o.roots, Allow: o.rules("https://api.test")}, "")
	direct := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: o.roots}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", o.tls)
	}}
	defer direct.CloseIdleConnections()
	ways := []*http.Transport{direct, box.client("http", true).Transport.(*http.Transport)}
	get := func(way *http.Transport, path string) error {
		return getAll(way, "https://api.test"+path)
	}
	compare := func(name string, f func(way *http.Transport) error) {
		b.Run(name, func(b *testing.B) {
			took := make([][]time.Duration, len(ways))
			for b.Loop() {
				for i, way := range ways {
					begin := time.Now()
					require.NoError(b, f(way))
					took[i] = append(took[i], time.Since(begin))
				}
			}
			median := func(i int) float64 {
				slices.Sort(took[i])
				return took[i][len(took[i])/2].Seconds() * 1e3
			}
			b.ReportMetric(median(0), "direct-ms")
			b.ReportMetric(median(1), "proxy-ms")
			b.ReportMetric(median(1)-median(0), "more-ms")
			b.ReportMetric(median(1)/median(0), "ratio")
		})
	}
	compare("new", func(way *http.Transport) error {
		defer way.CloseIdleConnections()
		return get(way, "/hello")
	})
	compare("kept", func(way *http.Transport) error { return get(way, "/hello") })
	compare("large", func(way *http.Transport) error { return get(way, "/large") })
	compare("at-once", func(way *http.Transport) error { return atOnce(way, get) })
}

// getAll gets an address, and reads all of the answer.
func getAll(way *http.Transport, address string) error {
	res, err := (&http.Client{Transport: way}).Get(address)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}
