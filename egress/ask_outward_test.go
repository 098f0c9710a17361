package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// publicNetwork makes a network of the engine's whose addresses count as public ones. The range is
// one in which the Internet has no servers (RFC 7535).
func publicNetwork(t testing.TB) string {
	t.Helper()
	engine := dockertest.Engine(t, dockertest.Image)
	const name = "sandshell-test-public"
	r, err := engine.NetworkCreate(t.Context(), name, client.NetworkCreateOptions{
		Internal: true, IPAM: &network.IPAM{Config: []network.IPAMConfig{
			{Subnet: netip.MustParsePrefix("192.31.196.0/24")}}}})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := engine.NetworkRemove(context.Background(), r.ID, client.NetworkRemoveOptions{})
		require.NoError(t, err)
	})
	return name
}

// TestOutwardAsk shows a box whose programs reach servers at a public address because Config.Ask
// allows it, by the proxy and without: this request, this box, or not at all.
func TestOutwardAsk(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "TestAsk has the verdicts, and TestAskConnection an address")
	outside := boxtest.Container(t, sshbox.Config{Network: publicNetwork(t)})
	command := func(b sandbox.Sandbox, command string) string {
		t.Helper()
		res, err := b.Execute(t.Context(), command, sandbox.Timeout(testenv.Limit))
		require.NoError(t, err)
		require.Zero(t, res.ExitCode, res.Output)
		return strings.TrimSpace(res.Output)
	}
	address := netip.MustParseAddr(command(outside, "hostname -i")).As4()
	o := newOutside(t)
	secure, err := outside.Listen(t.Context(), "tcp", "0.0.0.0:443")
	require.NoError(t, err)
	s := &http.Server{Handler: o.mux, TLSConfig: &tls.Config{GetCertificate: o.certificate}}
	go func() { _ = s.ServeTLS(secure, "", "") }()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	database, err := outside.Listen(t.Context(), "tcp", "0.0.0.0:5432")
	require.NoError(t, err)
	go func() {
		for {
			c, err := database.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "ready")
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { database.Close() })

	resolver, _ := nameServer(t, func(int64) [4]byte { return address })
	var mu sync.Mutex
	var asked []string
	g, err := New(Config{Roots: o.roots, Resolver: resolver,
		Ask: func(_ context.Context, r Request) Verdict {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.String())
			name, _, _ := strings.Cut(r.Host, ".")
			return map[string]Verdict{"once": {true, ThisRequest}, "box": {true, ThisBox}}[name]
		}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	box := boxtest.Container(t, sshbox.Config{Network: "none", Outward: true})
	_, err = g.Attach(t.Context(), box)
	require.NoError(t, err)
	get := `python3 -c '
import sys, urllib.request as u, urllib.error
for url in sys.argv[1:]:
    try: print(u.urlopen(url).read().decode())
    except urllib.error.HTTPError as e: print(e.code, e.read().decode().split(": ")[-1])' `
	talk := "for i in 1 2; do exec 3<>/dev/tcp/%s.example.com/5432; read -u 3 a; echo $a; done"
	for _, unset := range []string{"", "unset HTTPS_PROXY https_proxy; "} {
		for _, c := range []struct{ command, want, asks string }{
			{get + "https://once.example.com/hello https://once.example.com/hello",
				"hello by HTTP/2.0, GET once.example.com\nhello by HTTP/2.0, GET once.example.com",
				"GET https://once.example.com/hello GET https://once.example.com/hello"},
			{get + "https://no.example.com/hello", "403 it was asked for, and refused",
				"GET https://no.example.com/hello"},
			{fmt.Sprintf(talk, "once"), "ready\nready",
				"tcp://once.example.com:5432 tcp://once.example.com:5432"},
		} {
			mu.Lock()
			asked = nil
			mu.Unlock()
			require.Equal(t, c.want, command(box, unset+c.command))
			mu.Lock()
			require.Equal(t, c.asks, strings.Join(asked, " "))
			mu.Unlock()
		}
	}
	mu.Lock()
	asked = nil
	mu.Unlock()
	command(box, fmt.Sprintf(talk, "box")+"; "+get+"https://box.example.com/hello "+
		"https://box.example.com/echo")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"tcp://box.example.com:5432", "GET https://box.example.com/hello"},
		asked)
}
