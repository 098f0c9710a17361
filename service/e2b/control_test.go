package e2b_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/service"
	gateway "github.com/sandshell/sandshell/service/e2b"
)

// ask sends a request of the control plane, and decodes the answer into answer if that is not nil.
func ask(t testing.TB, g *e2btest.Gateway, key, method, path, body string, answer any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), method, g.URL+path,
		bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	r.Header.Set("X-API-KEY", key)
	resp, err := g.Control.HTTP.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if answer != nil {
		require.NoError(t, json.Unmarshal(text, answer), "%s", text)
	}
	return resp.StatusCode
}

// TestControl goes through the life of a sandbox, as SDKs of both generations do.
func TestControl(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, func(c *gateway.Config) {
		c.Domain, c.Templates = "boxes.example.com", map[string]string{"mine": "small"}
	})
	var s e2b.Sandbox
	require.Equal(t, 201, ask(t, g, e2btest.Key, "POST", "/v2/sandboxes", `{"templateID":"mine",
		"metadata":{"k":"v"},"envVars":{},"mcp":null,"autoPause":false,"network":{},
		"autoResume":{"enabled":false}}`, &s))
	require.Equal(t, "small", s.TemplateID)
	require.Equal(t, "boxes.example.com", *s.Domain)
	require.NotEmpty(t, s.EnvdAccessToken)
	at := "/sandboxes/" + s.SandboxID
	left := func() time.Duration {
		t.Helper()
		var d e2b.Detail
		require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", at, "", &d))
		require.Equal(t, s.EnvdAccessToken, d.EnvdAccessToken)
		require.Equal(t, map[string]string{"k": "v"}, d.Metadata)
		return time.Until(d.EndAt)
	}
	near := func(seconds int) {
		t.Helper()
		require.InDelta(t, seconds, left().Seconds(), 30)
	}
	near(300)
	post := func(want int, path, body string) {
		t.Helper()
		require.Equal(t, want, ask(t, g, e2btest.Key, "POST", path, body, nil))
	}
	post(204, at+"/timeout", `{"timeout":100}`)
	near(100)
	post(200, at+"/connect", `{"timeout":60}`) // never earlier
	near(100)
	post(200, "/v2"+at+"/connect", `{"timeout":200}`)
	near(200)
	post(204, at+"/refreshes", `{"duration":400}`)
	near(400)
	post(400, at+"/timeout", `{"timeout":0}`)
	post(409, at+"/resume", `{"timeout":60}`)
	post(204, at+"/pause", ``)
	post(409, at+"/pause", `{}`)
	require.Greater(t, left(), 24*time.Hour) // a paused sandbox has no end
	list := func(query string) (states []string) {
		t.Helper()
		var items []e2b.Listed
		require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", query, "", &items))
		for _, i := range items {
			states = append(states, i.State)
		}
		return states
	}
	require.Equal(t, []string{"paused"}, list("/v2/sandboxes?metadata=k%3Dv"))
	require.Equal(t, []string{"paused"}, list("/v2/sandboxes?state=paused&limit=1"))
	require.Empty(t, list("/v2/sandboxes?state=running"))
	require.Empty(t, list("/v2/sandboxes?metadata=k%3Dw"))
	require.Empty(t, list("/sandboxes"))
	post(201, at+"/resume", `{"timeout":60}`)
	near(60)
	post(204, at+"/pause", `{}`)
	post(201, "/v2"+at+"/connect", `{"timeout":90}`)
	near(90)
	require.Equal(t, []string{"running"}, list("/v2/sandboxes?state=running,paused"))

	// another owner
	require.Equal(t, 404, ask(t, g, e2btest.OtherKey, "GET", at, "", nil))
	require.Equal(t, 404, ask(t, g, e2btest.OtherKey, "DELETE", at, "", nil))
	var none []e2b.Listed
	require.Equal(t, 200, ask(t, g, e2btest.OtherKey, "GET", "/v2/sandboxes", "", &none))
	require.Empty(t, none)
	require.Equal(t, 401, ask(t, g, "wrong", "GET", at, "", nil))

	var metrics []map[string]any
	require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", at+"/metrics", "", &metrics))
	require.Greater(t, metrics[0]["memUsed"], 0.0)
	require.Equal(t, 204, ask(t, g, e2btest.Key, "DELETE", at, "", nil))
	require.Equal(t, 404, ask(t, g, e2btest.Key, "DELETE", at, "", nil))
}

// TestRefused checks that what is not served is named.
func TestRefused(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/sandboxes", `{"templateID":"base","autoPauseMemory":false}`, 501,
			"autoPauseMemory"},
		{"POST", "/sandboxes", `{"templateID":"base","volumeMounts":[{"a":"b"}]}`, 501,
			"volumeMounts"},
		{"POST", "/sandboxes", `{"templateID":"none"}`, 404, "none"},
		{"POST", "/sandboxes", `{"templateID":"base","timeout":-1}`, 400, "timeout"},
		{"POST", "/sandboxes", `{`, 400, "body"},
		{"POST", "/templates", `{}`, 501, "write a spec"},
		{"POST", "/v3/templates", `{"name":"x"}`, 501, "write a spec"},
		{"POST", "/v2/templates/x/builds/y", `{}`, 501, "write a spec"},
		{"GET", "/sandboxes/x/logs", ``, 404, "x"},
		{"DELETE", "/templates/base", ``, 403, "a spec of the service"},
		{"DELETE", "/templates/none", ``, 404, "none"},
		{"GET", "/templates/aliases/none", ``, 404, "none"},
		{"GET", "/v2/sandboxes?state=new", ``, 400, "new"},
		{"GET", "/v2/sandboxes?nextToken=x", ``, 400, "Page"},
	} {
		var e struct {
			Code    int
			Message string
		}
		require.Equal(t, c.status, ask(t, g, e2btest.Key, c.method, c.path, c.body, &e), c.path)
		require.Equal(t, c.status, e.Code)
		require.Contains(t, e.Message, c.says)
	}
	var list []map[string]any
	require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", "/templates", "", &list))
	require.Len(t, list, 3)
}

// TestTimeoutEnds checks that a sandbox is gone at its end, though nobody removes it then.
func TestTimeoutEnds(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	c := g.Client(box)
	does(t, c, "true")
	require.NoError(t, g.Control.SetTimeout(within(t), box.SandboxID, 1))
	for end := time.Now().Add(testenv.Limit); ; time.Sleep(50 * time.Millisecond) {
		err := c.Call(within(t), e2b.ProcessService+"List", &e2b.Empty{}, &e2b.ListResponse{})
		if e2b.HasStatus(err, 502) {
			break
		}
		require.NoError(t, err)
		require.True(t, time.Now().Before(end), "it has not ended within a minute")
	}
	require.Equal(t, 404, ask(t, g, e2btest.Key, "GET", "/sandboxes/"+box.SandboxID, "", nil))
}

// TestSnapshot starts a sandbox from the files of another.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	does(t, g.Client(box), "echo kept >/tmp/file")
	var made struct{ SnapshotID string }
	require.Equal(t, 201, ask(t, g, e2btest.Key, "POST", "/sandboxes/"+box.SandboxID+"/snapshots",
		"{}", &made))
	g.RemoveImage(t, made.SnapshotID)
	copied := g.New(t, e2b.NewSandbox{TemplateID: made.SnapshotID})
	require.Equal(t, "kept\n", does(t, g.Client(copied), "cat /tmp/file").stdout.String())
	// The image of a box cannot be removed.
	require.NoError(t, g.Control.Kill(within(t), copied.SandboxID))

	// A snapshot is its owner's.
	type snapshot struct {
		SnapshotID string
		Names      []string
	}
	snapshots := func(key, query string) (list []snapshot) {
		t.Helper()
		require.Equal(t, 200, ask(t, g, key, "GET", "/snapshots"+query, "", &list))
		return list
	}
	own := []snapshot{{made.SnapshotID, []string{made.SnapshotID}}}
	require.Equal(t, own, snapshots(e2btest.Key, "?limit=100"))
	require.Equal(t, own, snapshots(e2btest.Key, "?sandboxID="+box.SandboxID))
	require.Empty(t, snapshots(e2btest.Key, "?sandboxID="+copied.SandboxID))
	require.Empty(t, snapshots(e2btest.OtherKey, ""))
	at := "/templates/" + url.PathEscape(made.SnapshotID)
	alias := "/templates/aliases/" + url.PathEscape(made.SnapshotID)
	var found struct {
		TemplateID string
		Public     bool
	}
	require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", alias, "", &found))
	require.Equal(t, made.SnapshotID, found.TemplateID)
	require.False(t, found.Public)
	require.Equal(t, 404, ask(t, g, e2btest.OtherKey, "GET", alias, "", nil))
	require.Equal(t, 404, ask(t, g, e2btest.OtherKey, "DELETE", at, "", nil))
	new := `{"templateID":"` + made.SnapshotID + `"}`
	require.Equal(t, 404, ask(t, g, e2btest.OtherKey, "POST", "/sandboxes", new, nil))
	templates := func(key string) (ids []string) {
		t.Helper()
		var list []struct{ TemplateID string }
		require.Equal(t, 200, ask(t, g, key, "GET", "/templates", "", &list))
		for _, l := range list {
			ids = append(ids, l.TemplateID)
		}
		return ids
	}
	require.Equal(t, []string{"base", "exit", "small"}, templates(e2btest.OtherKey))
	require.ElementsMatch(t, []string{"base", "exit", "small", made.SnapshotID},
		templates(e2btest.Key))
	require.Equal(t, 204, ask(t, g, e2btest.Key, "DELETE", at, "", nil))
	require.Equal(t, 404, ask(t, g, e2btest.Key, "DELETE", at, "", nil))
	require.Equal(t, 404, ask(t, g, e2btest.Key, "POST", "/sandboxes", new, nil))
	require.Empty(t, snapshots(e2btest.Key, ""))
}

// TestLogs checks what the log of a sandbox has, in both versions.
func TestLogs(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	require.Equal(t, int32(7), does(t, g.Client(box), "exit 7").end.ExitCode)
	require.NoError(t, g.Control.SetTimeout(within(t), box.SandboxID, 100))
	at := "/sandboxes/" + box.SandboxID + "/logs"
	type entry struct {
		Timestamp      time.Time
		Message, Level string
		Fields         map[string]string
	}
	two := func(query string) (messages []string, entries []entry) {
		t.Helper()
		var answer struct{ Logs []entry }
		require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", "/v2"+at+query, "", &answer))
		for _, e := range answer.Logs {
			require.Equal(t, "info", e.Level)
			messages = append(messages, e.Message)
		}
		return messages, answer.Logs
	}
	// The end of a process is logged after its client has been told.
	want := []string{"sandbox timeout", "process ended", "process started", "sandbox created"}
	require.Eventually(t, func() bool {
		messages, _ := two("")
		return len(messages) == len(want)
	}, testenv.Limit, 10*time.Millisecond)
	messages, entries := two("")
	require.ElementsMatch(t, want, messages) // the end and the timeout are at once
	require.Equal(t, "sandbox created", messages[3])
	require.Equal(t, "small", entries[3].Fields["template"])
	require.Equal(t, "process started", messages[2])
	require.Equal(t, "/bin/sh -c exit 7", entries[2].Fields["command"])
	_, ended := two("?search=ended&level=info&direction=backward")
	require.Len(t, ended, 1)
	require.Equal(t, "exit status 7", ended[0].Fields["status"])
	messages, _ = two("?direction=forward&limit=2")
	require.Equal(t, []string{"sandbox created", "process started"}, messages)
	messages, _ = two(fmt.Sprintf("?cursor=%d", entries[3].Timestamp.UnixMilli()))
	require.Equal(t, []string{"sandbox created"}, messages)
	messages, _ = two("?level=warn")
	require.Empty(t, messages)

	var one struct {
		Logs []struct {
			Timestamp time.Time
			Line      string
		}
		LogEntries []entry
	}
	require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", at+"?limit=2", "", &one))
	require.Equal(t, `sandbox created template="small"`, one.Logs[0].Line)
	require.Len(t, one.Logs, 2)
	require.Equal(t, "process started", one.LogEntries[1].Message)
	require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", at+fmt.Sprintf("?start=%d",
		entries[0].Timestamp.Add(time.Hour).UnixMilli()), "", &one))
	require.Empty(t, one.Logs)
	require.Equal(t, 400, ask(t, g, e2btest.Key, "GET", "/v2"+at+"?limit=1001", "", nil))
	require.Equal(t, 400, ask(t, g, e2btest.Key, "GET", "/v2"+at+"?direction=up", "", nil))
	require.Equal(t, 400, ask(t, g, e2btest.Key, "GET", "/v2"+at+"?level=all", "", nil))
	require.Equal(t, 404, ask(t, g, e2btest.OtherKey, "GET", "/v2"+at, "", nil))
}

// TestAccess checks what a request needs, and what it is told about a sandbox that does not exist.
func TestAccess(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	other := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	get := func(host, path string, headers ...string) (int, string) {
		r, err := http.NewRequestWithContext(within(t), "GET", g.URL+path, nil)
		require.NoError(t, err)
		if host != "" {
			r.Host = host
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := g.Control.HTTP.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	status := func(want int, host, path string, headers ...string) string {
		t.Helper()
		got, text := get(host, path, headers...)
		require.Equal(t, want, got, text)
		return text
	}
	status(204, "", "/health")
	status(204, "49983-"+box.SandboxID+".example.com", "/health")
	status(502, "49983-nosuchbox.example.com", "/health")
	status(401, "", "/files?path=/etc/hosts", "E2b-Sandbox-Id", box.SandboxID)
	status(401, "", "/files?path=/etc/hosts", "E2b-Sandbox-Id", box.SandboxID, "X-Access-Token",
		other.EnvdAccessToken)
	status(401, "", "/files?path=/etc/hosts", "E2b-Sandbox-Id", "nosuchbox", "X-Access-Token",
		box.EnvdAccessToken)
	status(200, "", "/files?path=/etc/hosts", "E2b-Sandbox-Id", box.SandboxID, "X-Access-Token",
		box.EnvdAccessToken)

	// a port of the box
	sb, err := g.Service.Open(within(t), box.SandboxID)
	require.NoError(t, err)
	l, err := sb.Listen(within(t), "tcp", "127.0.0.1:8080")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Empty(t, r.Header.Get("E2b-Traffic-Access-Token"))
		io.WriteString(w, "of the box "+r.URL.Path)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	host := "8080-" + box.SandboxID + ".example.com"
	status(401, host, "/x")
	require.Equal(t, "of the box /x", status(200, host, "/x", "E2b-Traffic-Access-Token",
		*box.TrafficAccessToken))
	for range 3 { // with a body that nobody reads
		r, err := http.NewRequestWithContext(within(t), "POST", g.URL, bytes.NewReader(
			make([]byte, 1<<20)))
		require.NoError(t, err)
		r.Host = "81-" + box.SandboxID + ".example.com"
		r.Header.Set("E2b-Traffic-Access-Token", *box.TrafficAccessToken)
		resp, err := g.Control.HTTP.Do(r)
		if err == nil { // the server may have closed the connection while the body was sent
			require.Equal(t, 502, resp.StatusCode)
			resp.Body.Close()
		}
	}
	require.Contains(t, status(502, "81-"+box.SandboxID+".example.com", "/",
		"E2b-Traffic-Access-Token", *box.TrafficAccessToken), "port 81 is not open")
}

// TestToken checks what the access token of a sandbox depends on: its id, and the use.
func TestToken(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	info, err := g.Service.Get(within(t), box.SandboxID)
	require.NoError(t, err)
	require.Equal(t, service.Running, info.Status)
	require.Equal(t, g.Service.Token("e2b", box.SandboxID), box.EnvdAccessToken)
	require.NotEqual(t, g.Service.Token("other", box.SandboxID), box.EnvdAccessToken)
	require.NotEqual(t, g.Service.Token("e2b", box.SandboxID+"x"), box.EnvdAccessToken)
}

func TestMisuse(t *testing.T) {
	require.PanicsWithValue(t, "e2b: Config.Service: it is nil: give the Service",
		func() { gateway.Handler(gateway.Config{}) })
}
