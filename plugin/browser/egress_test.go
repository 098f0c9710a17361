package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sshbox"
)

// TestEgress shows Chromium in a box whose only way out is a gate's: it finds the proxy, trusts the
// box's authority, and shows why a page is refused.
func TestEgress(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<p>hello from %s</p>", r.Host)
	}))
	t.Cleanup(s.Close)
	box := container(t, sshbox.Config{Network: "none", PluginNetwork: "bridge"})
	g, err := egress.New(egress.Config{
		Roots: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Allow: []egress.Rule{{Scheme: "https", Host: "*.example.com",
			To: s.Listener.Addr().String()}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	_, err = g.Attach(t.Context(), box)
	require.NoError(t, err)
	b := open(t, box, browser.Config{})
	for url, want := range map[string]string{
		"https://a.example.com/": "hello from a.example.com",
		"https://evil.test/":     "sandshell egress: evil.test:443 is not on the list",
	} {
		err := b.Navigate(t.Context(), url)
		require.NoError(t, err)
		text, err := b.Text(t.Context())
		require.NoError(t, err)
		require.Contains(t, text, want)
	}
}
