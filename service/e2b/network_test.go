package e2b_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
)

// TestNetwork narrows what a sandbox may reach, at its start and later. That the rules are kept is
// for the tests of package service.
func TestNetwork(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	no := false
	all := []string{e2b.AllTraffic}
	box := g.New(t, e2b.NewSandbox{TemplateID: "exit", Network: &e2b.Network{DenyOut: all,
		AllowOut: []string{"a.example.com", "other.org", "192.0.2.1/32"}}})
	at := "/sandboxes/" + box.SandboxID
	is := func(network *e2b.Network, rules ...string) {
		t.Helper()
		e, err := g.Service.Egress(within(t), box.SandboxID)
		require.NoError(t, err)
		require.ElementsMatch(t, rules, e.Rules)
		var d e2b.Detail
		require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", at, "", &d))
		require.Equal(t, network, d.Network)
	}
	is(&e2b.Network{DenyOut: all, AllowOut: []string{"a.example.com", "other.org", "192.0.2.1"}},
		"https://a.example.com")
	put := func(want int, body string) {
		t.Helper()
		var answer map[string]any
		got := ask(t, g, e2btest.Key, "PUT", at+"/network", body, nil)
		require.Equal(t, want, got, "%s", answer)
	}
	put(204, `{"allow_internet_access":false}`)
	is(&e2b.Network{DenyOut: all})
	require.Contains(t, does(t, g.Client(box), `python3 -c '
import urllib.request as u
try: u.urlopen("https://a.example.com", timeout=20)
except Exception as e: print(e)'`).stdout.String(), "403")
	put(204, `{}`)
	is(nil, "https://*.example.com")
	put(204, `{"denyOut":["0.0.0.0/0","10.0.0.0/8"],"allowOut":["*.b.example.com"]}`)
	is(&e2b.Network{DenyOut: all, AllowOut: []string{"*.b.example.com"}},
		"https://*.b.example.com")
	put(204, `{"allowOut":["8.8.8.8"]}`) // without denyOut it says nothing
	is(nil, "https://*.example.com")
	for body, want := range map[string]int{
		`{"allowOut":["a.example.com"]}`: 400, `{"denyOut":["a.example.com"]}`: 400,
		`{"denyOut":["8.8.8.8"]}`: 501, `{"rules":{"a.com":[{"transform":{}}]}}`: 501,
		`{"egressProxy":{"address":"a:1"}}`: 501, `{"new":1}`: 501,
		`{"denyOut":["0.0.0.0/0"],"allowOut":["10.0.0.0/8"]}`: 501,
		`{"denyOut":["0.0.0.0/0"],"allowOut":["a b"]}`:        400,
	} {
		put(want, body)
	}
	is(nil, "https://*.example.com")
	require.Equal(t, 404, ask(t, g, e2btest.OtherKey, "PUT", at+"/network", "{}", nil))
	g.New(t, e2b.NewSandbox{TemplateID: "small", Internet: &no})
	for _, body := range []string{`{"denyOut":["0.0.0.0/0"],"allowOut":["a.com"]}`,
		`{"allowPublicTraffic":true}`, `{"maskRequestHost":"x"}`, `{"new":"x"}`} {
		require.Equal(t, 501, ask(t, g, e2btest.Key, "POST", "/sandboxes",
			`{"templateID":"small","network":`+body+`}`, nil), body)
	}
	require.NoError(t, g.Control.Pause(within(t), box.SandboxID))
	put(409, `{}`)
}
