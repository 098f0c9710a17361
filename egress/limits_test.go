package egress

import (
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestIdleConns shows that idle connections keep nobody out.
func TestIdleConns(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	b := open(t, Config{Roots: o.roots, Allow: o.rules("https://api.test"),
		Limits: Limits{Conns: 8}}, "")
	idle := []net.Conn{b.tlsTo("api.test:443"), b.tlsTo("api.test:443", "h2"),
		b.connect("api.test:443")}
	for range 60 {
		idle = append(idle, b.dial())
	}
	status, _ := do(t, b.client("http", true), "GET", "https://api.test/hello", nil)
	require.Equal(t, 200, status)
	_, err := idle[0].Read(make([]byte, 1)) // the oldest
	require.Error(t, err)

	// What is at work stays, and others wait.
	arrived, release := make(chan bool, 8), make(chan bool)
	o.mux.HandleFunc("/wait", func(http.ResponseWriter, *http.Request) {
		arrived <- true
		<-release
	})
	done := make(chan error, 9)
	get := func(path string) {
		res, err := b.client("http", false).Get("https://api.test/" + path)
		if err == nil {
			err = res.Body.Close()
		}
		done <- err
	}
	for range 8 {
		go get("wait")
		<-arrived
	}
	go get("hello")
	close(release)
	for range 9 {
		require.NoError(t, <-done)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	for name, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"rate":  {Limits{Rate: 1e-6}, "all the requests"},
		"bytes": {Limits{Bytes: 10}, "all the bytes"},
	} {
		b := open(t, Config{Roots: o.roots, Limits: c.limits, Allow: append(
			o.rules("https://api.test", "http://api.test"),
			Rule{Scheme: "tcp", Host: "db.test", Ports: []int{1}, To: o.plain})}, "")
		client := b.client("http", true)
		status, _ := do(t, client, "GET", "http://api.test/nothing", nil)
		require.Equal(t, 404, status, name)
		for _, url := range []string{"https://api.test/hello", "http://api.test/hello"} {
			status, body := do(t, client, "GET", url, nil)
			require.Equal(t, 429, status, name)
			require.Contains(t, body, c.want)
		}
		status, body := exchange(t, b.dial(), "CONNECT db.test:1 HTTP/1.1\r\n\r\n")
		require.Equal(t, 403, status)
		require.Contains(t, body, c.want)
	}
	for want, l := range map[string]Limits{"Conns: -1": {Conns: -1}, "Rate: -1": {Rate: -1},
		"Bytes: -1": {Bytes: -1}} {
		_, err := New(Config{Limits: l})
		require.ErrorContains(t, err, "egress: Config.Limits."+want)
	}
	_, err := New(Config{Deny: Rules("a", "http://")})
	require.ErrorContains(t, err, `egress: Config.Deny[1]: rule "http://", column 8: there is no h`)
}

// A pipeListener gives connections that the test makes.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestFirstByte shows how long a connection may be silent, on a clock of its own.
func TestFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Config{Allow: Rules("api.test")})
		require.NoError(t, err)
		x, err := g.newExit("Box", "", nil)
		require.NoError(t, err)
		require.NoError(t, g.add(x))
		l := make(pipeListener)
		served := make(chan error, 1)
		go func() { served <- x.serve(l) }()
		for _, begin := range []string{"", "C", "CONNECT api.test:443 HTTP/1.1\r\n", "\x05",
			"CONNECT api.test:443 HTTP/1.1\r\n\r\n",
			"\x05\x01\x00\x05\x01\x00\x03\x08api.test\x01\xbb",
			"CONNECT api.test:443 HTTP/1.1\r\n\r\n\x16", "GET http://api.test/ HTTP/1.1\r\n"} {
			ours, theirs := net.Pipe()
			l <- theirs
			at := time.Now()
			go func() { _, _ = io.WriteString(ours, begin) }()
			_, _ = io.Copy(io.Discard, ours)
			require.LessOrEqual(t, time.Since(at), 2*firstByte, "%q", begin)
			require.NoError(t, ours.Close())
		}
		close(l)
		<-served
		require.NoError(t, g.Close())
	})
}

func TestAuthority(t *testing.T) {
	t.Parallel()
	a, err := newAuthority(nil)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(a.pem()))
	require.Equal(t, x509.KeyUsageCertSign|x509.KeyUsageCRLSign, a.cert.KeyUsage)
	require.True(t, a.cert.IsCA && a.cert.MaxPathLenZero && a.cert.BasicConstraintsValid)
	require.Equal(t, a.cert.SubjectKeyId, a.cert.AuthorityKeyId)
	long := strings.Repeat("a", 60) + ".test"
	for _, host := range []string{"a.test", "127.0.0.1", "2a00::1", long} {
		c, err := a.certificateOf(host)
		require.NoError(t, err)
		leaf := c.Leaf
		_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host,
			CurrentTime: time.Now().Add(-47 * time.Hour)})
		require.NoError(t, err)
		require.Equal(t, a.cert.SubjectKeyId, leaf.AuthorityKeyId)
		require.NotEmpty(t, leaf.SubjectKeyId)
		require.NotEqual(t, leaf.SubjectKeyId, leaf.AuthorityKeyId)
		require.Equal(t, x509.KeyUsageDigitalSignature, leaf.KeyUsage)
		require.False(t, leaf.IsCA)
		require.Less(t, leaf.NotAfter.Sub(leaf.NotBefore), 398*24*time.Hour)
		again, err := a.certificateOf(host)
		require.NoError(t, err)
		require.Same(t, c, again)
	}
	for i := range mostLeaves + 5 {
		_, err := a.certificateOf(fmt.Sprintf("h%d.test", i))
		require.NoError(t, err)
		require.LessOrEqual(t, len(a.leaves), mostLeaves)
	}
	other, err := newAuthority(nil)
	require.NoError(t, err)
	require.NotEqual(t, a.cert.SerialNumber, other.cert.SerialNumber)
	require.NotEqual(t, a.key, other.key)
}

// TestKeyStore shows the format of Java's trust store: keytool lists both certificates.
func TestKeyStore(t *testing.T) {
	t.Parallel()
	var bundle []byte
	for range 2 {
		a, err := newAuthority(nil)
		require.NoError(t, err)
		bundle = append(bundle, a.pem()...)
	}
	store := javaKeyStore(pemCertificates(bundle))
	require.Equal(t, "feedfeed0000000200000002", fmt.Sprintf("%x", store[:12]))
	java, err := exec.LookPath("keytool")
	if err != nil || !testenv.All() {
		return
	}
	file := filepath.Join(t.TempDir(), "ca.jks")
	require.NoError(t, os.WriteFile(file, store, 0o600))
	out, err := exec.Command(java, "-list", "-keystore", file, "-storepass", jksPassword).Output()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(out), "trustedCertEntry"), "%s", out)
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	require.Empty(t, routes4("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"))
	require.Equal(t, []string{"0.0.0.0/0 by eth0", "172.17.0.0/16 by docker0"}, routes4(
		"Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n"+
			"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\n"+
			"docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n"+
			"eth1\t000011AC\t00000000\t0000\t0\t0\t0\t0000FFFF\t0\n"+
			"eth2\t000011AC\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\n"+
			"lo\t0000007F\t00000000\t0001\t0\t0\t0\t000000FF\t0\n"))
	require.Equal(t, unknownRoutes, routes4("?\n"))
	zero := strings.Repeat("0", 32)
	require.Equal(t, []string{"fe80::/64 by eth0"}, routes6(
		zero+" 00 "+zero+" 00 "+zero+" ffffffff 00000001 00000000 00200200       lo\n"+
			"fe80"+zero[4:]+" 40 "+zero+" 00 "+zero+" 00000100 00000001 00000000 00000001 eth0\n"+
			zero+" 00 "+zero+" 00 "+zero+" ffffffff 00000001 00000000 00200200 eth0\n"))
	require.True(t, usable("what?"))
}
