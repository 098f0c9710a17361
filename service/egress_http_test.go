package service

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/egress"
	"github.com/stretchr/testify/require"
)

// TestEgressHTTP shows what clients may choose, and what they see of a hostile box.
func TestEgressHTTP(t *testing.T) {
	t.Parallel()
	defer http.DefaultClient.CloseIdleConnections()
	s := exits(t, uniqueName(t), outside(t), nil)
	d := readDocument(t)
	a := serveAPI(t, d, s, HandlerConfig{})
	var failed struct{ Code, Detail string }
	a.ask(t, "", "POST /sandboxes?sandbox_id=a", `{"egress":["b.example.com"]}`, 422, &failed)
	require.Contains(t, failed.Detail, "egress: clients may not choose it here")
	open := serveAPI(t, d, s, HandlerConfig{Egress: true})
	open.ask(t, "", "POST /sandboxes?sandbox_id=a", `{"egress":["GET"]}`, 422, &failed)
	require.Contains(t, failed.Detail, "egress[0]: ")
	var box boxJSON
	rules := []string{"https://a.example.com", "https://b.example.com"}
	open.ask(t, "", "POST /sandboxes?sandbox_id=a", `{"egress":["https://b.example.com"]}`, 200,
		&box)
	require.Equal(t, rules, box.Egress)
	require.Nil(t, box.Hosts)
	execute(t, s, "a", `ln -s "$(command -v python3)" "/tmp/$(printf 'x\033[2J')"; `+noProxy+"/tmp/x*"+
		strings.TrimPrefix(fetch("c.test"), "python3"))
	var shown egressJSON
	a.ask(t, "", "GET /sandboxes/a/egress", "", 200, &shown)
	require.Equal(t, rules, shown.Rules)
	require.True(t, shown.Served)
	require.Equal(t, 1, shown.Count)
	require.Len(t, shown.Refused, 1)
	require.Equal(t, "c.test", shown.Refused[0].Host)
	require.Equal(t, 443, shown.Refused[0].Port)
	require.Contains(t, shown.Refused[0].Why, "is not on the list")
	hostile := toRefusal(egress.Event{Host: "\x1b[2J\n" + strings.Repeat("a", 10<<10)})
	require.Equal(t, `\x1b[2J\n`+strings.Repeat("a", maxShown-5), hostile.Host)
	var specs pageJSON[*specJSON]
	a.ask(t, "", "GET /sandbox-specs/search", "", 200, &specs)
	require.Equal(t, rules[:1], specs.Items[0].Egress)
	require.Equal(t, "none", specs.Items[0].Network)
}

// TestHostsHTTP narrows the rules of a box, at its start and later, by a client who may not choose
// rules.
func TestHostsHTTP(t *testing.T) {
	t.Parallel()
	defer http.DefaultClient.CloseIdleConnections()
	s := exits(t, uniqueName(t), outside(t), func(s *Spec) {
		s.Egress = []string{"https://*.example.com"}
	})
	a := serveAPI(t, readDocument(t), s, HandlerConfig{})
	var box boxJSON
	shows := func(hosts, rules []string) {
		t.Helper()
		require.Equal(t, hosts, box.Hosts)
		require.Equal(t, rules, box.Egress)
		var read boxJSON
		a.ask(t, "", "GET /sandboxes/a", "", 200, &read)
		require.Equal(t, box, read)
	}
	a.ask(t, "", "POST /sandboxes?sandbox_id=a", `{"hosts":["A.example.com","other.org"]}`, 200,
		&box)
	shows([]string{"a.example.com", "other.org"}, []string{"https://a.example.com"})
	p := load(t, s, "a")
	p.fetches(t, s, "b.example.com", "Forbidden")
	a.ask(t, "", "PATCH /sandboxes/a", `{"hosts":["b.example.com"],"ends_in_seconds":3600}`, 200,
		&box)
	shows([]string{"b.example.com"}, []string{"https://b.example.com"})
	require.WithinDuration(t, time.Now().Add(time.Hour), *box.Ends, time.Minute)
	p.fetches(t, s, "b.example.com", "hello false")
	a.ask(t, "", "PATCH /sandboxes/a", `{"hosts":[]}`, 200, &box)
	shows([]string{}, []string{})
	require.NotNil(t, box.Ends, "what a request leaves out stays as it is")
	p.fetches(t, s, "b.example.com", "Forbidden")
	a.ask(t, "", "PATCH /sandboxes/a", `{"hosts":["*"]}`, 200, &box)
	shows([]string{"*"}, []string{"https://*.example.com"})
	p.fetches(t, s, "a.example.com", "hello true")

	for request, at := range map[string]string{
		`{"hosts":["a.com","10.0.0.0/8"]}`:                   "hosts[1]: ",
		`{"hosts":["https://a.com"],"ends_in_seconds":60}`:   "hosts[0]: ",
		`{"hosts":[` + strings.Repeat(`"a",`, 200) + `"a"]}`: "hosts: they are 201",
	} {
		for _, to := range []string{"POST /sandboxes?sandbox_id=b", "PATCH /sandboxes/a"} {
			var failed struct{ Detail string }
			a.ask(t, "", to, request, 422, &failed)
			require.Equal(t, at, failed.Detail[:min(len(at), len(failed.Detail))], request)
		}
	}
	a.ask(t, "", "GET /sandboxes/a", "", 200, &box)
	shows([]string{"*"}, []string{"https://*.example.com"})
	require.WithinDuration(t, time.Now().Add(time.Hour), *box.Ends, time.Minute,
		"a request that is wrong changes nothing")
}
