package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sshbox"
)

// TestEgress shows Chromium in a box whose only way out is a gate's: it finds the proxy, or needs
// none, trusts the box's authority, and shows why a page is refused.
func TestEgress(t *testing.T) {
	t.Parallel()
	for via, c := range map[string]sshbox.Config{
		"connect": {},
		"outward": {Outward: true},
	} {
		t.Run(via, func(t *testing.T) {
			t.Parallel()
			checkEgress(t, c, via)
		})
	}
}

func checkEgress(t *testing.T, c sshbox.Config, via string) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<p>hello from %s</p>", r.Host)
	}))
	t.Cleanup(s.Close)
	c.Network, c.PluginNetwork = "none", "bridge"
	box := container(t, c)
	var mu sync.Mutex
	said := map[string]string{} // by host, how Chromium has connected
	g, err := egress.New(egress.Config{
		Roots: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Allow: []egress.Rule{{Scheme: "https", Host: "*.example.com",
			To: s.Listener.Addr().String()}},
		Log: func(e egress.Event) {
			mu.Lock()
			defer mu.Unlock()
			said[e.Host] = e.Via
		}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	_, err = g.Attach(t.Context(), box)
	require.NoError(t, err)
	var env []string
	if c.Outward {
		env = []string{"HTTP_PROXY=", "http_proxy=", "HTTPS_PROXY=", "https_proxy="}
	}
	b := open(t, box, browser.Config{Env: env})
	for host, want := range map[string]string{
		"a.example.com": "hello from a.example.com",
		"evil.test":     "sandshell egress: evil.test:443 is not on the list",
	} {
		err := b.Navigate(t.Context(), "https://"+host+"/")
		require.NoError(t, err)
		text, err := b.Text(t.Context())
		require.NoError(t, err)
		require.Contains(t, text, want)
		mu.Lock()
		require.Equal(t, via, said[host])
		mu.Unlock()
	}
}
