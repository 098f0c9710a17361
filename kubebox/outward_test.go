package kubebox

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
)

// TestOutward checks that programs of a pod, without proxy variables, reach what the rules allow,
// and no more, and what they connect to inside.
func TestOutward(t *testing.T) {
	t.Parallel()
	b := newBox(t, Config{Cluster: cluster(t), Outward: true})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from %s", r.Host)
	}))
	t.Cleanup(s.Close)
	var mu sync.Mutex
	var events []egress.Event
	c := egress.Config{
		Roots: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Allow: []egress.Rule{{Scheme: "https", Host: "*.example.com",
			To: s.Listener.Addr().String()}},
		Log: func(e egress.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		}}
	gate := func(advisory bool) *egress.Gate {
		c.Advisory = advisory
		g, err := egress.New(c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, g.Close()) })
		return g
	}
	strict := gate(false)
	_, err := strict.Attach(t.Context(), b)
	require.ErrorContains(t, err, "if kubebox.CheckNetwork has found that the cluster enforces")
	exit, err := gate(true).Attach(t.Context(), b)
	require.NoError(t, err)
	require.False(t, exit.Isolated())

	const without = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy\n"
	const get = `python3 -c 'import urllib.request as u
print(u.urlopen("https://a.example.com/").read().decode())'`
	does(t, b, get, "hello from a.example.com\n")
	does(t, b, "echo $HTTPS_PROXY", "http://127.0.0.1:3128\n") // nobody else has its loopback
	does(t, b, without, "")
	does(t, b, get, "hello from a.example.com\n")
	mu.Lock()
	e := events[len(events)-1]
	mu.Unlock()
	require.Equal(t, "outward", e.Via)
	require.Equal(t, "python3", e.Program)
	require.Equal(t, "main", e.Session)
	does(t, b, "bash -c 'read -t 60 <>/dev/tcp/evil.test/22' 2>&1 | grep -o reset", "reset\n")
	does(t, b, "bash -c 'echo >/dev/tcp/10.96.0.1/443' && echo connected", "connected\n")

	// The pod's own address is the box itself.
	address, err := b.host.pod.Address(t.Context())
	require.NoError(t, err)
	l, err := b.Listen(t.Context(), "tcp", "0.0.0.0:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	does(t, b, fmt.Sprintf("exec 3<>/dev/tcp/%s/%s; exec 3>&-", address, port), "")
	inside, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, inside.Close())
	require.NoError(t, exit.Close())
	does(t, b, "bash -c 'read <>/dev/tcp/192.0.2.1/443' 2>&1 | grep -c refused", "2\n")

	// A pod without routes is isolated, as some clusters make them.
	podsAreHere(t)
	enter := "--net=" + filepath.Join(boxd(t, b), "ns", "net")
	out, err := exec.CommandContext(context.Background(), "nsenter", enter, "ip", "link", "set",
		"eth0", "down").CombinedOutput()
	require.NoError(t, err, string(out))
	exit, err = strict.Attach(t.Context(), b)
	require.NoError(t, err)
	require.True(t, exit.Isolated())
	does(t, b, without, "")
	does(t, b, get, "hello from a.example.com\n")
}
