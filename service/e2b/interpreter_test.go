package e2b_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/sshbox"
)

// withJupyter starts a gateway that has the template "code", whose boxes have IPython's kernel.
func withJupyter(t *testing.T) *e2btest.Gateway {
	t.Helper()
	testenv.NeedsAll(t, "installing Jupyter and matplotlib in a container takes two minutes")
	g := e2btest.Start(t, nil)
	require.NoError(t, g.Service.Specs().(*service.MemorySpecs).Set(&service.Spec{ID: "code",
		// The image is that of plugin/jupyter's tests.
		Config: sshbox.Config{Image: "sandshell-test", Network: "none", PluginNetwork: "bridge",
			Plugins: []plugin.Plugin{jupyter.Plugin(), {Name: "matplotlib",
				Requires: []string{"jupyter"},
				Files:    os.DirFS("../../examples/jupyter/matplotlib")}}}}))
	// The first box makes the image.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	info, err := g.Service.Start(ctx, service.StartOptions{Spec: "code"})
	require.NoError(t, err)
	require.NoError(t, g.Service.Delete(ctx, info.ID))
	return g
}

// toInterpreter sends a request to the code interpreter of a sandbox.
func toInterpreter(t testing.TB, ctx context.Context, g *e2btest.Gateway, s *e2b.Sandbox, method,
	path, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, g.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	for name, value := range map[string]string{"E2b-Sandbox-Id": s.SandboxID,
		"E2b-Sandbox-Port": "49999", "X-Access-Token": s.EnvdAccessToken,
		"E2b-Traffic-Access-Token": *s.TrafficAccessToken} {
		r.Header.Set(name, value)
	}
	resp, err := g.Control.HTTP.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// refused requires that the code interpreter refuses a request, and returns why.
func refused(t testing.TB, g *e2btest.Gateway, s *e2b.Sandbox, want int, method, path,
	body string) string {
	t.Helper()
	resp := toInterpreter(t, within(t), g, s, method, path, body)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, want, resp.StatusCode, "%s", text)
	return string(text)
}

// A cell reads the answer of an execution.
type cell struct {
	t     testing.TB
	lines *bufio.Scanner
}

// executing runs code in a context; "" is the default one.
func executing(t testing.TB, ctx context.Context, g *e2btest.Gateway, s *e2b.Sandbox, where,
	code string) *cell {
	t.Helper()
	body, err := json.Marshal(map[string]any{"code": code, "context_id": where, "language": nil,
		"env_vars": nil})
	require.NoError(t, err)
	resp := toInterpreter(t, ctx, g, s, "POST", "/execute", string(body))
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s", text)
	}
	return &cell{t, bufio.NewScanner(resp.Body)}
}

// next returns the next line that is not there to keep the connection alive. nil is the end.
func (c *cell) next() map[string]any {
	c.t.Helper()
	for c.lines.Scan() {
		var l map[string]any
		require.NoError(c.t, json.Unmarshal(c.lines.Bytes(), &l))
		if l["type"] != "keepalive" {
			return l
		}
	}
	return nil
}

// all returns the lines up to the end, which must be one.
func (c *cell) all() (all []map[string]any) {
	c.t.Helper()
	for l := c.next(); l != nil; l = c.next() {
		all = append(all, l)
	}
	require.NotEmpty(c.t, all)
	require.Equal(c.t, "end_of_execution", all[len(all)-1]["type"])
	return all
}

// value runs code that must not raise, and returns the text of its value.
func value(t testing.TB, g *e2btest.Gateway, s *e2b.Sandbox, where, code string) string {
	t.Helper()
	text := ""
	for _, l := range executing(t, within(t), g, s, where, code).all() {
		require.NotEqual(t, "error", l["type"], "%v", l)
		if l["is_main_result"] == true {
			text = l["text"].(string)
		}
	}
	return text
}

// TestNoInterpreter checks what a box without Jupyter answers, and that a server of the box's own
// is not hidden.
func TestNoInterpreter(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	s := g.New(t, e2b.NewSandbox{TemplateID: "base"})
	const hello = `{"code":"1"}`
	require.Contains(t, refused(t, g, s, 501, "POST", "/execute", hello),
		"take a template whose spec has the plugin jupyter")
	require.Contains(t, refused(t, g, s, 501, "POST", "/contexts", "{}"), "ipykernel")
	require.Contains(t, refused(t, g, s, 501, "GET", "/contexts", ""), "ipykernel")
	require.Contains(t, refused(t, g, s, 501, "POST", "/execute", `{"code":"1","language":"r"}`),
		`language "r" is not served here`)
	refused(t, g, s, 400, "POST", "/execute", `{"code":"1","language":"python","context_id":"x"}`)
	refused(t, g, s, 400, "POST", "/execute", `{"code":"1","env_vars":{"A=B":"c"}}`)
	refused(t, g, s, 400, "POST", "/execute", `{"code":`)
	refused(t, g, s, 404, "POST", "/none", hello)
	other := *s
	other.EnvdAccessToken = "wrong"
	require.Contains(t, refused(t, g, &other, 401, "POST", "/execute", hello), "X-Access-Token")
	wrong := "wrong"
	other.TrafficAccessToken = &wrong
	refused(t, g, &other, 401, "GET", "/contexts", "")

	_, r := start(t, g.Client(s), &e2b.StartRequest{Process: &e2b.ProcessConfig{Cmd: "python3",
		Args: []string{"-c", `
import http.server
class H(http.server.BaseHTTPRequestHandler):
	def do_POST(self):
		self.send_response(200)
		self.end_headers()
		self.wfile.write(b"the image's own")
server = http.server.HTTPServer(("127.0.0.1", 49999), H)
open("/tmp/up", "w").close()
server.serve_forever()`}}})
	require.NotZero(t, r.pid)
	does(t, g.Client(s), "until [ -e /tmp/up ]; do sleep 0.01; done")
	require.Equal(t, "the image's own", refused(t, g, s, 200, "POST", "/execute", hello))
}

// TestContexts checks that contexts do not share what code defines, and what becomes of them.
func TestContexts(t *testing.T) {
	t.Parallel()
	g := withJupyter(t)
	s := g.New(t, e2b.NewSandbox{TemplateID: "code", EnvVars: map[string]string{"FROM": "create"}})
	require.Equal(t, "create", value(t, g, s, "", "import os; x = 1; os.environ['FROM']"))

	var c struct{ ID, Language, CWD string }
	text := refused(t, g, s, 200, "POST", "/contexts", `{"cwd":"/usr/lib","language":"python"}`)
	require.NoError(t, json.Unmarshal([]byte(text), &c))
	require.Equal(t, "/usr/lib", c.CWD)
	require.Equal(t, "/usr/lib", value(t, g, s, c.ID, "import os; x = 2; os.getcwd()"))
	require.Equal(t, "1", value(t, g, s, "", "x"))
	require.Equal(t, "2", value(t, g, s, c.ID, "x"))
	require.Contains(t, refused(t, g, s, 400, "POST", "/contexts", `{"cwd":"/none"}`), "/none")

	var all []struct{ ID, CWD string }
	listed := func() (ids []string) {
		t.Helper()
		text := refused(t, g, s, 200, "GET", "/contexts", "")
		require.NoError(t, json.Unmarshal([]byte(text), &all))
		for _, c := range all {
			ids = append(ids, c.ID)
		}
		return ids
	}
	require.ElementsMatch(t, []string{"default", c.ID}, listed())
	require.Equal(t, "null\n", refused(t, g, s, 200, "POST", "/contexts/"+c.ID+"/restart", ""))
	require.Equal(t, "False /usr/lib", value(t, g, s, c.ID,
		"import os; f\"{'x' in globals()} {os.getcwd()}\""))

	// A kernel that dies begins afresh, in its directory.
	died := executing(t, within(t), g, s, c.ID, "x = 3; os.chdir('/'); os._exit(3)").all()
	require.Equal(t, "UnexpectedEndOfExecution", died[0]["name"])
	require.Contains(t, died[0]["value"], "exit status 3")
	require.ElementsMatch(t, []string{"default", c.ID}, listed())
	require.Equal(t, "False /usr/lib", value(t, g, s, c.ID,
		"import os; f\"{'x' in globals()} {os.getcwd()}\""))

	executing(t, within(t), g, s, c.ID, "os._exit(4)").all()
	require.Equal(t, "null\n", refused(t, g, s, 200, "DELETE", "/contexts/"+c.ID, ""))
	require.Equal(t, []string{"default"}, listed())
	require.Contains(t, refused(t, g, s, 404, "DELETE", "/contexts/"+c.ID, ""), "not found")
	require.Contains(t, refused(t, g, s, 404, "POST", "/execute",
		`{"code":"1","context_id":"`+c.ID+`"}`), "not found")
}

// TestClientLeaves checks that the end of a client interrupts its code, and nothing else.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	g := withJupyter(t)
	s := g.New(t, e2b.NewSandbox{TemplateID: "code"})
	ctx, leave := context.WithCancel(within(t))
	first := executing(t, ctx, g, s, "", `
import time
kept = "kept"
try:
	print("up", flush=True)
	time.sleep(3600)
except KeyboardInterrupt:
	kept += ", interrupted"`)
	require.Equal(t, "up\n", first.next()["text"])
	leave()
	require.Equal(t, "kept, interrupted", value(t, g, s, "", "kept")) // it waits for its turn

	// Two requests at once wait for each other, with the variables of each.
	body := func(name string) string {
		return `{"code":"import os, time; v = os.environ['N']; time.sleep(0.2); ` +
			`print(v, os.environ['N'])","env_vars":{"N":"` + name + `"}}`
	}
	answers := make(chan string, 2)
	for _, name := range []string{"one", "two"} {
		go func() {
			resp := toInterpreter(t, within(t), g, s, "POST", "/execute", body(name))
			text, _ := io.ReadAll(resp.Body)
			answers <- string(text)
		}()
	}
	both := <-answers + <-answers
	require.Contains(t, both, `"one one\n"`)
	require.Contains(t, both, `"two two\n"`)
	require.Equal(t, "None", value(t, g, s, "", "str(os.environ.get('N'))"))

	// A pause cuts the connection, and the interpreter works after it.
	cut := executing(t, within(t), g, s, "", "print('up', flush=True); time.sleep(3600)")
	require.Equal(t, "up\n", cut.next()["text"])
	require.NoError(t, g.Control.Pause(within(t), s.SandboxID))
	require.Nil(t, cut.next())
	require.Error(t, cut.lines.Err())
	_, err := g.Control.Connect(within(t), s.SandboxID, 60)
	require.NoError(t, err)
	require.Equal(t, "null\n", refused(t, g, s, 200, "POST", "/contexts/default/restart", ""))
	require.Equal(t, "3", value(t, g, s, "", "1 + 2"))
}

// TestKernelInImage checks that a box whose image has IPython's kernel gets the plugin when it is
// needed, though its spec does not name it.
func TestKernelInImage(t *testing.T) {
	t.Parallel()
	g := withJupyter(t)
	s := g.New(t, e2b.NewSandbox{TemplateID: "code"})
	removed := does(t, g.Client(s), `d=$(dirname $(dirname $(command -v execute_cli)))
		rm -rf "$d" "$d".* && ls "$(dirname "$d")" | grep jupyter`)
	require.Equal(t, int32(1), removed.end.ExitCode, "%s%s", &removed.stdout, &removed.stderr)
	spec, err := g.Service.Snapshot(within(t), s.SandboxID)
	require.NoError(t, err)
	g.RemoveImage(t, spec.ID)
	plain := *spec
	plain.ID, plain.Config.Plugins = "plain", nil
	require.NoError(t, g.Service.Specs().(*service.MemorySpecs).Set(&plain))
	s = g.New(t, e2b.NewSandbox{TemplateID: "plain"})
	require.NotZero(t, does(t, g.Client(s), "command -v execute_cli").end.ExitCode)
	t.Cleanup(func() { // its image can then be removed
		require.NoError(t, g.Service.Delete(context.Background(), s.SandboxID))
	})
	// The first call sets the plugin up, which takes some seconds, and a minute on a busy machine.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	all := executing(t, ctx, g, s, "", "x = 1; x + 1").all()
	require.Equal(t, "2", all[0]["text"], "%v", all)
	require.Equal(t, "1", value(t, g, s, "default", "x"))
}

// TestForeignInterpreter runs the part of testdata/client.py that runs code.
func TestForeignInterpreter(t *testing.T) {
	t.Parallel()
	g := withJupyter(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // against hanging
	defer cancel()
	out, err := exec.CommandContext(ctx, "python3", "testdata/client.py", g.URL, e2btest.Key,
		"code").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.GreaterOrEqual(t, strings.Count(string(out), "\n"), 15, "%s", out)
	t.Logf("%s", out)
}
