package e2b_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/service"
	gateway "github.com/sandshell/sandshell/service/e2b"
)

// TestAutoPause pauses a sandbox at its end. Its streams are cut, and a request with its token
// resumes it: a program goes on.
func TestAutoPause(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	seconds := int64(600)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small", AutoPause: true, Timeout: &seconds,
		AutoResume: &e2b.AutoResume{Enabled: true}})
	c := g.Client(box)
	s, r := start(t, c, shell("echo up; sleep 600"))
	r.read(t, s, func() bool { return r.stdout.Len() > 0 })
	detail := func() (d e2b.Detail) {
		t.Helper()
		require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", "/sandboxes/"+box.SandboxID, "", &d))
		return d
	}
	require.Equal(t, &e2b.Lifecycle{OnTimeout: "pause", AutoResume: true}, detail().Lifecycle)
	require.NoError(t, g.Control.SetTimeout(within(t), box.SandboxID, 1))
	r.read(t, s, nil)
	require.Error(t, r.err, "the pause cuts the stream")
	require.Nil(t, r.end)
	// The engine tells of a pause before its list has it.
	require.Eventually(t, func() bool { return detail().State == e2b.StatePaused }, testenv.Limit,
		20*time.Millisecond)

	// Only a request with the token resumes it.
	health := func(token string) int {
		q, err := http.NewRequestWithContext(within(t), "GET", g.URL+"/health", nil)
		require.NoError(t, err)
		q.Header.Set("E2b-Sandbox-Id", box.SandboxID)
		q.Header.Set("X-Access-Token", token)
		resp, err := g.Control.HTTP.Do(q)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, 502, health(""))
	require.Equal(t, 502, health("wrong"))
	require.Equal(t, e2b.StatePaused, detail().State)
	var list e2b.ListResponse
	require.NoError(t, c.Call(within(t), e2b.ProcessService+"List", &e2b.Empty{}, &list))
	require.Len(t, list.Processes, 1)
	require.Equal(t, r.pid, list.Processes[0].PID)
	require.Equal(t, e2b.StateRunning, detail().State)
	require.InDelta(t, seconds, time.Until(detail().EndAt).Seconds(), 60)

	require.NoError(t, g.Control.Pause(within(t), box.SandboxID))
	require.Equal(t, 204, health(box.EnvdAccessToken))
	require.Equal(t, e2b.StateRunning, detail().State)
}

// TestStreamsOfPaused: a pause cuts streams, also one that did not come by this API.
func TestStreamsOfPaused(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "small"})
	s, r := start(t, g.Client(box), shell("echo up; sleep 600"))
	r.read(t, s, func() bool { return r.stdout.Len() > 0 })
	require.NoError(t, g.Service.Pause(within(t), box.SandboxID))
	r.read(t, s, nil)
	require.Error(t, r.err)
	require.Eventually(t, func() bool {
		info, err := g.Service.Get(within(t), box.SandboxID)
		return err == nil && info.Status == service.Paused
	}, testenv.Limit, 20*time.Millisecond)
	require.True(t, e2b.HasStatus(g.Client(box).Call(within(t), e2b.ProcessService+"List",
		&e2b.Empty{}, &e2b.ListResponse{}), 502))
}

// TestFork copies a sandbox, unless the copies would lack something.
func TestFork(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	box := g.New(t, e2b.NewSandbox{TemplateID: "base", AutoPause: true,
		EnvVars: map[string]string{"FROM": "create"}})
	at := "/sandboxes/" + box.SandboxID + "/fork"
	does(t, g.Client(box), "echo kept >/tmp/file")
	var e struct{ Message string }
	s, r := start(t, g.Client(box), shell("sleep 600"))
	require.Equal(t, 409, ask(t, g, e2btest.Key, "POST", at, "{}", &e))
	require.Contains(t, e.Message, "would lack what runs in it: [program")
	require.NoError(t, g.Client(box).Call(within(t), e2b.ProcessService+"SendSignal",
		&e2b.SendSignalRequest{Process: of(r.pid).Process, Signal: e2b.SIGKILL}, &e2b.Empty{}))
	r.read(t, s, nil)
	var forks []e2b.Forked
	require.Equal(t, 201, ask(t, g, e2btest.Key, "POST", at, `{"count":2,"timeout":90}`, &forks))
	require.Len(t, forks, 2)
	for _, f := range forks {
		c := g.Client(f.Sandbox)
		require.Equal(t, "kept create\n", does(t, c,
			`echo "$(cat /tmp/file) $FROM"; rm /tmp/file`).stdout.String())
		var d e2b.Detail
		require.Equal(t, 200, ask(t, g, e2btest.Key, "GET", "/sandboxes/"+f.Sandbox.SandboxID, "",
			&d))
		require.Equal(t, "pause", d.Lifecycle.OnTimeout)
		require.InDelta(t, 90, time.Until(d.EndAt).Seconds(), 60)
		require.NoError(t, g.Control.Kill(within(t), f.Sandbox.SandboxID))
	}
	require.Equal(t, "kept\n", does(t, g.Client(box), "cat /tmp/file").stdout.String())
	for body, want := range map[string]int{`{"count":0}`: 400, `{"count":101}`: 400,
		`{"timeout":0}`: 400} {
		require.Equal(t, want, ask(t, g, e2btest.Key, "POST", at, body, nil), body)
	}
	require.NoError(t, g.Control.Pause(within(t), box.SandboxID))
	require.Equal(t, 409, ask(t, g, e2btest.Key, "POST", at, "{}", nil))
	require.Equal(t, 404, ask(t, g, e2btest.OtherKey, "POST", at, "{}", nil))
}

// TestDebug serves one box to those who know no token.
func TestDebug(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	info, err := g.Service.Start(within(t), service.StartOptions{ID: "d", Spec: "small"})
	require.NoError(t, err)
	debug := startDebug(t, g, info.ID)
	get := func(header, value string) int {
		q, err := http.NewRequestWithContext(within(t), "POST", debug+"/x", nil)
		require.NoError(t, err)
		if q.Header.Set(header, value); header == "Host" {
			q.Host = value
		}
		resp, err := g.Control.HTTP.Do(q)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, 502, get("X", ""), "nothing listens in the box")
	require.Equal(t, 403, get("Host", "attacker.example.com"))
	require.Equal(t, 403, get("Origin", "https://attacker.example.com"))
	require.Equal(t, 403, get("Sec-Fetch-Site", "cross-site"))
}

// startDebug serves a box as Debug does, at a port of the box where nothing listens.
func startDebug(t *testing.T, g *e2btest.Gateway, id string) string {
	t.Helper()
	server := httptest.NewServer(gateway.Debug(g.Handler, id))
	t.Cleanup(server.Close)
	return server.URL
}
