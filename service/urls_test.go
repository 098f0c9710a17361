package service

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestURLs checks the address of a port, and that the address leads back to it.
func TestURLs(t *testing.T) {
	long := strings.Repeat("x", 128)
	for _, c := range []struct{ base, id, port, want string }{
		{"https://boxes.example.com", "4f", "web", "https://web-4f.boxes.example.com/"},
		// OpenHands' clients need this name.
		{"https://boxes.example.com", "4f", "AGENT_SERVER",
			"https://agent_server-4f.boxes.example.com/"},
		{"https://boxes.example.com/", "4F", "AGENT_SERVER",
			"https://boxes.example.com/4F/AGENT_SERVER/"},
		{"https://boxes.example.com/", "a-b_c", "web", "https://web-a-b_c.boxes.example.com/"},
		{"http://Boxes.localhost:8080/b", "4f", "web", "http://web-4f.Boxes.localhost:8080/"},
		{"http://boxes.localhost:8080/b/", "4F", "web", "http://boxes.localhost:8080/b/4F/web/"},
		{"http://boxes.localhost:8080/b", "a.b", "web", "http://boxes.localhost:8080/b/a.b/web/"},
		{"http://boxes.localhost:8080", "ends-", "web", "http://boxes.localhost:8080/ends-/web/"},
		{"http://boxes.localhost:8080", long, "web", "http://boxes.localhost:8080/" + long +
			"/web/"},
		{"http://127.0.0.1:8080", "4f", "web", "http://127.0.0.1:8080/4f/web/"},
		{"http://[::1]/b", "4f", "web", "http://[::1]/b/4f/web/"},
		{"http://[::1]:8080/b", "4f", "web", "http://[::1]:8080/b/4f/web/"},
	} {
		base, err := url.Parse(c.base)
		require.NoError(t, err)
		got := URLs(base)(c.id, Port{Name: c.port, Port: 80})
		require.Equal(t, c.want, got)
		u, err := url.Parse(got)
		require.NoError(t, err)
		d, ok := destinationOf(base, u.Host, u.Path)
		require.True(t, ok, got)
		require.Equal(t, c.id, d.id)
		require.True(t, strings.EqualFold(c.port, d.port), d.port)
		require.Equal(t, strings.TrimSuffix(u.Path, "/"), d.prefix)
	}
}

func TestNoDestination(t *testing.T) {
	base, err := url.Parse("http://localhost:8080/boxes")
	require.NoError(t, err)
	for _, c := range [][2]string{
		{"localhost:8080", "/"}, {"localhost:8080", "/boxes"}, {"localhost:8080", "/boxes/"},
		{"localhost:8080", "/boxes/4f"}, {"localhost:8080", "/boxes/4f/"},
		{"localhost:8080", "/boxes//web/"}, {"localhost:8080", "/boxes/4f//"},
		{"localhost:8080", "/boxesx/4f/web/"},
		{"4f.localhost:8080", "/boxes/4f/web/"}, {"127.0.0.1:8080", "/boxes/4f/web/"},
		{"localhost.example.com", "/"}, {"", "/"},
	} {
		d, ok := destinationOf(base, c[0], c[1])
		require.False(t, ok, "%v: %+v", c, d)
	}
}

func TestWithoutKey(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a=1": "a=1", "session_api_key=K": "", "a=%20&session_api_key=K&b": "a=%20&b",
		"session%5Fapi_key=K&z=1&a=2":         "z=1&a=2",
		"session_api_key=K&session_api_key=L": "", "xsession_api_key=K": "xsession_api_key=K",
		"%zz=1": "%zz=1",
	} {
		require.Equal(t, want, withoutKey(in))
	}
}

func TestURLsWrong(t *testing.T) {
	require.PanicsWithValue(t, "service: URLs: it is nil: give the proxy's address, as "+
		"https://boxes.example.com", func() { URLs(nil) })
	base, err := url.Parse("boxes.example.com")
	require.NoError(t, err)
	require.PanicsWithValue(t,
		`service: ProxyConfig.URL: "boxes.example.com": write it with its scheme, as https://boxes.example.com`,
		func() { Proxy(&Service{}, ProxyConfig{URL: base}) })
	require.Panics(t, func() { Handler(nil, HandlerConfig{}) })
}
