package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// A benchBox is a container from which BenchmarkContainer asks for what is outside.
type benchBox struct {
	name string
	box  sandbox.Sandbox
	env  []string
}

// took runs this program in the box to measure something: see measure. The result is in
// milliseconds.
func (b *benchBox) took(t testing.TB, what, where string) float64 {
	t.Helper()
	var out, errs strings.Builder
	code, err := b.box.Run(t.Context(), &sandbox.Cmd{Args: []string{"/tmp/bench"},
		Env:    append([]string{"EGRESS_TEST_MEASURE=" + what + " " + where}, b.env...),
		Stdout: &out, Stderr: &errs})
	require.NoError(t, err)
	require.Zero(t, code, "%s: %s%s", b.name, out.String(), errs.String())
	us, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	require.NoError(t, err)
	return float64(us) / 1e3
}

// benchOutside is the server of BenchmarkContainer. It returns its port.
func benchOutside(b *testing.B) (*outside, string) {
	o := newOutside(b)
	large := make([]byte, 100e6)
	o.mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(large)
	})
	l, err := net.Listen("tcp", "0.0.0.0:0") // the containers on the bridge connect to it
	require.NoError(b, err)
	s := &http.Server{Handler: o.mux, TLSConfig: &tls.Config{GetCertificate: o.certificate}}
	go func() { _ = s.ServeTLS(l, "", "") }()
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return o, port
}

// benchBoxes makes a container on the engine's default network, one whose programs use the proxy,
// and one whose programs know nothing of it.
func benchBoxes(b *testing.B) (boxes []*benchBox, port string) {
	dockertest.Engine(b, dockertest.Image)
	o, port := benchOutside(b)
	greeter := tcpServer(b, func(c net.Conn) { _, _ = io.WriteString(c, "x") })
	p := atoi(b, port)
	g, err := New(Config{Roots: o.roots, Allow: []Rule{
		{Scheme: "https", Host: "api.test", Ports: []int{p}, To: "127.0.0.1:" + port},
		{Scheme: "tcp", Host: "db.test", Ports: []int{5432}, To: greeter}}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, g.Close()) })
	program, err := os.Executable()
	require.NoError(b, err)
	for _, c := range []struct {
		name   string
		config sshbox.Config
		env    []string
	}{
		{"direct", sshbox.Config{ExtraHosts: []string{"api.test:host-gateway"}},
			[]string{"SSL_CERT_FILE=/tmp/roots"}},
		{"proxy", sshbox.Config{Network: "none"}, nil},
		{"outward", sshbox.Config{Network: "none", Outward: true},
			[]string{"HTTPS_PROXY=", "https_proxy="}},
	} {
		box := boxtest.Container(b, c.config)
		require.NoError(b, box.CopyTo(b.Context(), program, "/tmp/bench"))
		require.NoError(b, box.Files().WriteFile(b.Context(), "/tmp/roots", o.authority.pem(),
			0o644))
		if c.config.Network == "none" {
			_, err = g.Attach(b.Context(), box)
			require.NoError(b, err)
		}
		boxes = append(boxes, &benchBox{c.name, box, c.env})
	}
	return boxes, port
}

// BenchmarkContainer is what BenchmarkGet measures, by a program in a container: on the engine's
// default network, by the proxy of an Exit, and with Outward. They take turns.
func BenchmarkContainer(b *testing.B) {
	boxes, port := benchBoxes(b)
	for _, what := range []string{"new", "kept", "large", "at-once"} {
		b.Run(what, func(b *testing.B) {
			took := map[string][]float64{}
			for b.Loop() {
				for _, box := range boxes {
					took[box.name] = append(took[box.name], box.took(b, what,
						"https://api.test:"+port))
				}
			}
			for _, box := range boxes {
				b.ReportMetric(median(took[box.name]), box.name+"-ms")
			}
		})
	}
}

// BenchmarkOutward is a connection with Outward until its first byte: at rest, beside 600 that say
// nothing, and beside 20 programs that connect without end.
func BenchmarkOutward(b *testing.B) {
	boxes, port := benchBoxes(b)
	box := boxes[len(boxes)-1]
	for _, c := range []struct{ name, beside string }{
		{"rest", ""},
		{"idle", `ulimit -n 2000; python3 -c '
import socket
all = [socket.create_connection(("api.test", ` + port + `)) for i in range(600)]
input("ready? ")'`},
		{"flood", `python3 -c '
import os, socket
for i in range(20):
    if os.fork() == 0:
        while True: socket.create_connection(("db.test", 5432)).close()
input("ready? ")
os.killpg(0, 9)'`},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.beside != "" {
				s, err := box.box.Open(b.Context())
				require.NoError(b, err)
				defer s.Close()
				res, err := s.Execute(b.Context(), c.beside)
				require.NoError(b, err)
				require.Equal(b, sandbox.Waiting, res.State, res.Output)
				defer func() { _, _ = s.Input(context.Background(), "\n") }()
			}
			var took []float64
			for b.Loop() {
				took = append(took, box.took(b, "connect", "db.test:5432"))
			}
			b.ReportMetric(median(took), "connect-ms")
			b.ReportMetric(slices.Max(took), "slowest-ms")
		})
	}
}

func median[T int64 | float64](took []T) T {
	slices.Sort(took)
	return took[len(took)/2]
}

// measure is the program of a benchBox. It prints how many microseconds something takes: the median
// of several.
func measure(what, where string) error {
	get := func(way *http.Transport, path string) error { return getAll(way, where+path) }
	way := http.DefaultTransport.(*http.Transport)
	steps := map[string]struct {
		count int
		do    func() error
	}{
		"new": {20, func() error {
			defer way.CloseIdleConnections()
			return get(way, "/hello")
		}},
		"kept":    {200, func() error { return get(way, "/hello") }},
		"large":   {1, func() error { return get(way, "/large") }},
		"at-once": {1, func() error { return atOnce(way, get) }},
		"connect": {20, func() error {
			c, err := net.Dial("tcp", where)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = io.ReadFull(c, make([]byte, 1))
			return err
		}},
	}
	step := steps[what]
	var took []int64
	for range step.count {
		begin := time.Now()
		if err := step.do(); err != nil {
			return err
		}
		took = append(took, time.Since(begin).Microseconds())
	}
	fmt.Println(median(took))
	return nil
}

// atOnce makes a hundred connections side by side.
func atOnce(way *http.Transport, get func(*http.Transport, string) error) error {
	var wait sync.WaitGroup
	errs := make(chan error, 100)
	for range cap(errs) {
		wait.Go(func() {
			own := way.Clone()
			defer own.CloseIdleConnections()
			errs <- get(own, "/hello")
		})
	}
	wait.Wait()
	for range cap(errs) {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}
