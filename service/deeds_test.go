package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// isDeed reports whether an operation, such as "GET /sandboxes/{id}/files 200", is a deed.
func isDeed(operation string) bool {
	_, path, _ := strings.Cut(operation, " ")
	path, _, _ = strings.Cut(path, " ")
	below, ok := strings.CutPrefix(path, "/sandboxes/{id}/")
	return ok && !slices.Contains([]string{"pause", "resume", "egress", "fork"}, below)
}

// A deedsClient asks for deeds in the box "one" of the owner "me".
type deedsClient struct {
	*httpClient
	*testing.T
}

// do asks for a deed, such as "POST execute", and decodes the answer into v, unless v is nil.
func (c deedsClient) do(request, body string, status int, v any) {
	c.Helper()
	method, path, _ := strings.Cut(request, " ")
	c.ask(c.T, "me", method+" /sandboxes/one/"+path, body, status, v)
}

// fails asks for a deed that fails, and checks the beginning of its code and detail.
func (c deedsClient) fails(request, body string, status int, want string) {
	c.Helper()
	var e struct{ Code, Detail string }
	c.do(request, body, status, &e)
	require.Contains(c, e.Code+": "+e.Detail, want)
}

// An answer is the answer about a command.
type answer struct {
	Session, State string
	ExitCode       *int `json:"exit_code"`
	Awaits         *string
	Output         string
	EndedBy        *string `json:"ended_by"`
	Matched        *string
	Dir            *string `json:"working_dir"`
}

// execute runs a command that exits with 0, and returns its output.
func (c deedsClient) execute(command string) string {
	c.Helper()
	var got answer
	c.do("POST execute", asJSON(map[string]any{"command": command}), 200, &got)
	require.Equal(c, "exited", got.State)
	require.Equal(c, 0, *got.ExitCode, got.Output)
	return got.Output
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// openLocal makes a service whose boxes are directories of this machine, and starts the box "one"
// of the owner "me".
func openLocal(t *testing.T, change func(*Spec)) (*Service, *localPlace) {
	t.Helper()
	p := &localPlace{}
	s := open(t, "local", func(c *Config) { c.Place = p }, small("small", change))
	start(t, s, StartOptions{ID: "one", Owner: "me"})
	return s, p
}

// TestDeeds checks that each deed answers with each of the statuses of the document, and with no
// other.
func TestDeeds(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	s, p := openLocal(t, nil)
	owner := func(r *http.Request) string { return r.Header.Get("User") }
	client := func(t *testing.T, c HandlerConfig) deedsClient {
		c.Owner = owner
		return deedsClient{serveAPI(t, d, s, c), t}
	}
	all := func(t *testing.T, c deedsClient, user, query string, status int, code string) {
		for _, op := range (&handler{service: s}).operations() {
			if isDeed(op.Method + " " + op.Path) {
				path := strings.NewReplacer("{id}", "one", "{session}", "main", "{job}", "job-1").
					Replace(op.Path)
				var e struct{ Code string }
				c.ask(t, user, op.Method+" "+path+query, "", status, &e)
				require.Equal(t, code, e.Code, op.Path)
			}
		}
	}
	t.Run("Commands", func(t *testing.T) { client(t, HandlerConfig{}).testCommands() })
	t.Run("Events", func(t *testing.T) { client(t, HandlerConfig{}).testEvents() })
	t.Run("Leaves", func(t *testing.T) { client(t, HandlerConfig{}).testLeaves() })
	t.Run("NotAsked", func(t *testing.T) {
		c := client(t, HandlerConfig{})
		asked := p.count()
		for range 5 {
			c.execute("true")
		}
		require.LessOrEqual(t, p.count(), asked+1, "deeds in a known box do not ask the Place")
	})
	t.Run("Sessions", func(t *testing.T) { client(t, HandlerConfig{}).testSessions() })
	t.Run("Jobs", func(t *testing.T) { client(t, HandlerConfig{}).testJobs() })
	t.Run("Files", func(t *testing.T) { client(t, HandlerConfig{}).testFiles() })
	t.Run("Archives", func(t *testing.T) { client(t, HandlerConfig{}).testArchives() })
	t.Run("Large", func(t *testing.T) { client(t, HandlerConfig{maxUpload: 2 << 20}).testLarge() })
	t.Run("Denied", func(t *testing.T) {
		p.poor.Store(true)
		defer p.poor.Store(false)
		client(t, HandlerConfig{}).testDenied()
	})
	t.Run("Terminal", func(t *testing.T) {
		client(t, HandlerConfig{Origins: []string{"*.example.com"}}).testTerminal()
	})

	t.Run("Foreign", func(t *testing.T) {
		all(t, client(t, HandlerConfig{}), "you", "", 404, "not_found")
	})
	t.Run("Query", func(t *testing.T) {
		all(t, client(t, HandlerConfig{}), "me", "?nonsense=1", 422, "invalid")
	})
	t.Run("TooMany", func(t *testing.T) {
		all(t, client(t, HandlerConfig{maxRequests: -1}), "me", "", 429, "too_many")
	})
	t.Run("Paused", func(t *testing.T) {
		require.NoError(t, s.Pause(t.Context(), "one"))
		all(t, client(t, HandlerConfig{}), "me", "", 409, "conflict")
	})
	t.Run("Down", func(t *testing.T) {
		p.fail(errors.New("no engine"))
		defer p.fail(nil)
		all(t, client(t, HandlerConfig{}), "me", "", 503, "unavailable")
	})
	deeds := slices.DeleteFunc(d.all(), func(op string) bool { return !isDeed(op) })
	slices.Sort(deeds)
	require.Equal(t, deeds, slices.Sorted(maps.Keys(d.shown)))
}

func (c deedsClient) testCommands() {
	var got answer
	c.do("POST execute", `{"command":"cd /tmp; echo hello; false"}`, 200, &got)
	require.Equal(c, answer{Session: "main", State: "exited", ExitCode: new(1), Output: "hello\n",
		Dir: new("/tmp")}, got)
	c.do("POST execute", `{"command":"read -p 'go on? ' x; echo got $x"}`, 200, &got)
	require.Equal(c, "waiting", got.State)
	require.Equal(c, "line", *got.Awaits)
	require.Nil(c, got.ExitCode)
	c.fails("POST execute", `{"command":"true"}`, 409, "busy: ")
	c.do("POST sessions/main/input", `{"text":"yes\n"}`, 200, &got)
	require.Equal(c, "exited", got.State)
	require.Equal(c, "yes\ngot yes\n", got.Output[strings.Index(got.Output, "yes"):])
	for request, body := range map[string]string{"input": `{"text":"x"}`, "wait": "",
		"interrupt": ""} {
		c.fails("POST sessions/main/"+request, body, 409, "idle: ")
	}
	c.do("POST execute", `{"command":"sleep 1000","yield_seconds":0.01}`, 200, &got)
	require.Equal(c, "running", got.State)
	c.do("POST sessions/main/wait", `{"yield_seconds":0.01}`, 200, &got)
	require.Equal(c, "running", got.State)
	c.do("POST sessions/main/interrupt", "", 200, &got)
	require.Equal(c, 130, *got.ExitCode)
	c.do("POST execute", `{"command":"sleep 1000","timeout_seconds":0.01}`, 200, &got)
	require.Equal(c, "timeout", *got.EndedBy)
	c.do("POST execute", `{"command":"read x","at_question":"fail"}`, 200, &got)
	require.Equal(c, "question", *got.EndedBy)
	c.do("POST execute", `{"command":"cat","at_question":"end_input"}`, 200, &got)
	require.Equal(c, "exited", got.State)
	c.do("POST execute", `{"command":"echo serving on 80; sleep 1000","until":"on \\d+"}`, 200,
		&got)
	require.Equal(c, "on 80", *got.Matched)
	c.do("POST sessions/main/interrupt", `{}`, 200, nil)

	for body, want := range map[string]string{
		`{}`:                                      "invalid: command: it is missing",
		`{"comand":"x"}`:                          `comand: there is no such key: did you mean "command"?`,
		`{"command":"x","timeout_seconds":"1"}`:   `timeout_seconds: "1" is not a number`,
		`{"command":"x","yield_seconds":-1}`:      "invalid: yield_seconds: -1: write seconds",
		`{"command":"x","until":"("}`:             "invalid: until: error parsing regexp",
		`{"command":"x","at_question":"no"}`:      "invalid: at_question: \"no\": write return",
		`{"command":"x","max_output_bytes":9e9}`:  "is not a whole number",
		`{"command":"x","patience_seconds":1e99}`: "invalid: patience_seconds",
	} {
		c.fails("POST execute", body, 422, want)
	}
	c.fails("POST sessions/main/input", "", 422, "invalid: text: it is missing")
	c.fails("POST execute", `{"command":"x","session":"none"}`, 404,
		"not_found: there is no session")
}

// testLeaves goes away from requests. The commands go on, and wait tells of them.
func (c deedsClient) testLeaves() {
	for _, accept := range []string{"", "text/event-stream"} {
		dir := c.TempDir()
		ctx, leave := context.WithCancel(c.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", c.url+"/sandboxes/one/execute",
			strings.NewReader(asJSON(map[string]any{"at_question": "keep_waiting",
				"command": "touch " + dir + "/begun; read x; echo got $x"})))
		require.NoError(c, err)
		r.Header.Set("User", "me")
		r.Header.Set("Accept", accept)
		left := make(chan error)
		go func() {
			res, err := http.DefaultClient.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			left <- err
		}()
		eventually(c, "the command has begun", func() bool {
			_, err := os.Stat(dir + "/begun")
			return err == nil
		})
		leave()
		require.ErrorIs(c, <-left, context.Canceled)
		var got answer
		c.do("POST sessions/main/wait", "", 200, &got)
		require.Equal(c, "waiting", got.State)
		c.do("POST sessions/main/input", `{"text":"it\n"}`, 200, &got)
		require.Contains(c, got.Output, "got it\n")
	}
}

// testEvents gets the output of a command as it comes.
func (c deedsClient) testEvents() {
	events := c.events("execute",
		`{"command":"printf 'h\\303'; sleep 0.05; printf '\\244\\n'; read x; echo got $x"}`)
	text := ""
	for ; events[0].name == "output"; events = events[1:] {
		text += events[0].data["text"].(string)
	}
	require.Equal(c, "hä\n", text, "as the terminal gets it, in whole runes")
	require.Len(c, events, 1)
	require.Equal(c, "result", events[0].name)
	require.NoError(c, c.matches(c.schema("Execution"), events[0].data, "result"))
	require.Equal(c, "waiting", events[0].data["state"])
	events = c.events("sessions/main/input", `{"text":"x\n"}`)
	require.Equal(c, "exited", events[len(events)-1].data["state"])
}

type event struct {
	name string
	data map[string]any
}

// events asks for a deed with events.
func (c deedsClient) events(path, body string) (all []event) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), "POST", c.url+"/sandboxes/one/"+path,
		strings.NewReader(body))
	require.NoError(c, err)
	r.Header.Set("User", "me")
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	require.NoError(c, err)
	defer res.Body.Close()
	require.Equal(c, 200, res.StatusCode)
	require.NoError(c, c.check("POST", r.URL.EscapedPath(), 200, res.Header.Get("Content-Type"),
		nil))
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		switch kind, text, _ := strings.Cut(lines.Text(), ": "); kind {
		case "event":
			all = append(all, event{name: text})
		case "data":
			require.NoError(c, json.Unmarshal([]byte(text), &all[len(all)-1].data))
		}
	}
	require.NoError(c, lines.Err())
	require.NotEmpty(c, all)
	return all
}

func (c deedsClient) testSessions() {
	c.execute("x=1; cd /")
	dir := c.TempDir()
	var second struct{ ID string }
	c.do("POST sessions", asJSON(map[string]any{"working_dir": dir, "rows": 5, "cols": 20,
		"env": map[string]string{"GREETING": "hi"}}), 200, &second)
	var list struct{ Items []struct{ ID string } }
	c.do("GET sessions", "", 200, &list)
	require.Equal(c, "main", list.Items[0].ID)
	require.Equal(c, second, list.Items[1])
	var got answer
	c.do("POST execute", asJSON(map[string]any{"session": second.ID,
		"command": "echo $GREETING $x; pwd; stty size"}), 200, &got)
	require.Equal(c, "hi\n"+dir+"\n5 20\n", got.Output)
	require.Equal(c, second.ID, got.Session)
	c.do("POST sessions/"+second.ID+"/resize", `{"rows":6,"cols":30}`, 200, nil)
	c.do("POST execute", asJSON(map[string]any{"session": second.ID, "command": "stty size"}), 200,
		&got)
	require.Equal(c, "6 30\n", got.Output)
	var shown struct{ Lines []string }
	c.do("GET sessions/"+second.ID+"/screen", "", 200, &shown)
	require.Contains(c, shown.Lines, "6 30")
	c.do("DELETE sessions/"+second.ID, "", 200, nil)
	for _, request := range []string{"DELETE sessions/" + second.ID, "GET sessions/none/screen",
		"POST sessions/none/wait", "POST sessions/none/interrupt"} {
		c.fails(request, "", 404, "not_found: there is no session")
	}
	c.fails("DELETE sessions/main", "", 409, "conflict: the main session lives as long as the box")
	c.fails("POST sessions/main/resize", `{"rows":5}`, 422, "invalid: rows, cols: 5 and 0")
	c.fails("POST sessions", `{"rows":5000}`, 422, "invalid: rows, cols: 5000 and 0")
	c.fails("POST sessions", `{"env":{"A=B":""}}`, 422, `the variable "A=B"`)
	c.fails("POST sessions", `{"env":{"":""}}`, 422, "env[0]: it has no name")
	c.fails("POST sessions", `{"working_dir":"/no/such"}`, 422, "invalid: working_dir")
	c.fails("POST sessions", `{"user":"nobody at all"}`, 422, "invalid: user")
	c.fails("POST sessions", c.forbidden(""), 403, "permission: ")
}

// forbidden returns a body with a user that the box may not become, or one who may not enter the
// directory.
func (c deedsClient) forbidden(more string) string {
	user := `"user":"root"`
	if os.Getuid() == 0 {
		dir := c.TempDir()
		require.NoError(c, os.Chmod(dir, 0o700))
		user = fmt.Sprintf(`"user":"nobody","working_dir":%q`, dir)
	}
	return "{" + strings.Trim(user+","+more, ",") + "}"
}
