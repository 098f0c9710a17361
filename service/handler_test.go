package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// An httpClient asks a Handler. Each of its answers is checked against the document. The header
// User is the owner of a request.
type httpClient struct {
	*document
	url string
}

func serveAPI(t *testing.T, d *document, s *Service, o HandlerConfig) *httpClient {
	t.Helper()
	server := httptest.NewServer(Handler(s, o))
	t.Cleanup(server.Close)
	return &httpClient{document: d, url: server.URL}
}

// ask makes a request, such as "GET /sandboxes?id=1", and checks its status. It decodes the answer
// into v, unless v is nil.
func (a *httpClient) ask(t *testing.T, user, request, body string, status int, v any) {
	t.Helper()
	method, target, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, a.url+target, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("User", user)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, status, res.StatusCode, "%s: %s", request, answer)
	require.NoError(t, a.check(method, r.URL.EscapedPath(), res.StatusCode,
		res.Header.Get("Content-Type"), answer), "%s: %s", request, answer)
	if v != nil {
		require.NoError(t, json.Unmarshal(answer, v))
	}
}

// TestHandler checks that each operation of the document answers with each of its statuses, and
// with no other.
func TestHandler(t *testing.T) {
	t.Parallel()
	defer http.DefaultClient.CloseIdleConnections()
	base, err := url.Parse("http://boxes.localhost")
	require.NoError(t, err)
	specs := []*Spec{
		small("small", func(s *Spec) {
			s.Ports, s.Env, s.MaxPerOwner = []Port{{"web", 80}}, []string{"A=1=2"}, 3
		}),
		small("other", nil),
	}
	s := open(t, uniqueName(t), func(o *Config) { o.URL = URLs(base) }, specs...)
	d := readDocument(t)
	a := serveAPI(t, d, s, HandlerConfig{Owner: func(r *http.Request) string {
		return r.Header.Get("User")
	}})
	t.Run("Life", a.testLife)
	t.Run("Wrong", a.testWrong)
	t.Run("Fork", a.testFork)
	t.Run("Foreign", a.testForeign)
	t.Run("Specs", a.testSpecs)

	nowhere, err := client.New(client.WithHost("unix:///no/such/socket"))
	require.NoError(t, err)
	defer nowhere.Close()
	dir := filepath.Join(t.TempDir(), "specs")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "small.yaml"), []byte("image: x"), 0o600))
	store, err := OpenSpecs(dir)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	down := open(t, "down", func(o *Config) { o.Place, o.Specs = placeOn(nowhere), store })
	serveAPI(t, d, down, HandlerConfig{}).testDown(t)

	cannot := open(t, uniqueName(t), func(o *Config) {
		o.Place = pauseless{placeOn(nil)}
	}, specs...)
	serveAPI(t, d, cannot, HandlerConfig{}).testUnsupported(t)

	maps.DeleteFunc(d.shown, func(op string, _ bool) bool { return isDeed(op) })
	all := slices.DeleteFunc(d.all(), isDeed)
	slices.Sort(all)
	require.Equal(t, all, slices.Sorted(maps.Keys(d.shown)),
		"the operations and statuses of the document, and those that were answered")
}

type boxPage struct {
	Items []*boxJSON
	Next  *string `json:"next_page_id"`
}

func (a *httpClient) testLife(t *testing.T) {
	var box, same boxJSON
	a.ask(t, "me", "POST /sandboxes?sandbox_spec_id=small&sandbox_id=one",
		`{"env":{"TOKEN":"a=b"},"metadata":{"team":"a=1"},"ends_in_seconds":3600}`, 200, &box)
	require.Equal(t, map[string]string{"team": "a=1"}, box.Metadata)
	require.WithinDuration(t, time.Now().Add(time.Hour), *box.Ends, time.Minute)
	require.Equal(t, "one", box.ID)
	require.Equal(t, "small", box.Spec)
	require.Equal(t, "me", *box.Owner)
	require.Equal(t, Running, box.Status)
	require.Equal(t, []urlJSON{{Name: "web", URL: "http://web-one.boxes.localhost/", Port: 80}},
		box.URLs)
	require.NotEmpty(t, *box.Key)
	require.Nil(t, box.Use)
	a.ask(t, "me", "POST /sandboxes?sandbox_spec_id=small&sandbox_id=one", "", 200, &same)
	require.Equal(t, box, same)

	a.ask(t, "me", "GET /sandboxes/one", "", 200, &same)
	require.Equal(t, box, same)

	var none egressJSON
	a.ask(t, "me", "GET /sandboxes/one/egress", "", 200, &none)
	require.Equal(t, egressJSON{Refused: []refusalJSON{}}, none)
	a.ask(t, "me", "PATCH /sandboxes/one", `{"ends_in_seconds":0}`, 200, &same)
	require.Nil(t, same.Ends)
	a.ask(t, "me", "POST /sandboxes/one/pause", "", 200, nil)
	var list []*boxJSON
	a.ask(t, "me", "GET /sandboxes?id=none&id=one&id=/", "", 200, &list)
	require.Len(t, list, 3)
	require.Nil(t, list[0])
	require.Nil(t, list[2])
	require.Equal(t, Paused, list[1].Status)
	require.Nil(t, list[1].Key)
	require.Nil(t, list[1].URLs)
	a.ask(t, "me", "POST /sandboxes/one/resume", "", 200, nil)

	a.ask(t, "me", "POST /sandboxes", "", 200, &box) // the default spec, and an id that is made
	var first, second boxPage
	a.ask(t, "me", "GET /sandboxes/search?limit=1&use=true", "", 200, &first)
	require.Len(t, first.Items, 1)
	require.Equal(t, box.ID, first.Items[0].ID, "the newest first")
	require.Positive(t, first.Items[0].Use.Memory)
	require.NotNil(t, first.Next)
	a.ask(t, "me", "GET /sandboxes/search?limit=1&page_id="+*first.Next, "", 200, &second)
	require.Equal(t, "one", second.Items[0].ID)
	require.Equal(t, "all", *second.Items[0].Kept)
	a.ask(t, "me", "GET /sandboxes/search?status=PAUSED", "", 200, &second)
	require.Empty(t, second.Items)
	for query, want := range map[string]int{"team=a%3D1": 1, "team=b": 0, "x=": 0,
		"team=a%3D1&metadata=x=y": 0} {
		a.ask(t, "me", "GET /sandboxes/search?metadata="+query, "", 200, &second)
		require.Len(t, second.Items, want, query)
	}
	a.ask(t, "me", "DELETE /sandboxes/"+box.ID, "", 200, nil)
	a.ask(t, "me", "GET /openapi.json", "", 200, nil)
}

func (a *httpClient) testWrong(t *testing.T) {
	many := "?id=x" + strings.Repeat("&id=x", 100)
	for _, c := range []struct {
		request, body string
		status        int
	}{
		{"GET /sandboxes/search?limit=0", "", 422}, {"GET /sandboxes/search?limit=101", "", 422},
		{"GET /sandboxes/search?limit=ten", "", 422},
		{"GET /sandboxes/search?page_id=forged", "", 422},
		{"GET /sandboxes/search?status=running", "", 422},
		{"GET /sandboxes/search?use=maybe", "", 422}, {"GET /sandboxes/search?use", "", 422},
		{"GET /sandboxes/search?use=false", "", 200},
		{"GET /sandboxes/search?limit=1&limit=2", "", 422},
		{"GET /sandboxes/search?status=%zz", "", 422},
		{"GET /sandboxes/search?limit=1;use=true", "", 422},
		{"GET /sandboxes", "", 422}, {"GET /sandboxes" + many, "", 400},
		{"POST /sandboxes?sandbox_spec_id=none", "", 404},
		{"POST /sandboxes?sandbox_id=-", "", 422}, {"POST /sandboxes?sandbox_id=a%20b", "", 422},
		{"POST /sandboxes?sandbox_id=one&sandbox_spec_id=other", "", 409},
		{"POST /sandboxes", "{", 422}, {"POST /sandboxes", `{"env":["A"]}`, 422},
		{"POST /sandboxes", `{"env":{"A=B":"C"}} `, 422},
		{"POST /sandboxes", `{"env":{"":"C"}}`, 422},
		{"POST /sandboxes", `{"env":{"A":"` + strings.Repeat("x", 1<<20) + `"}}`, 422},
		{"POST /sandboxes", `{"environment":{}}`, 422}, {"POST /sandboxes", `{} {}`, 422},
		{"POST /sandboxes", `{"metadata":{"a=b":""}}`, 422},
		{"POST /sandboxes", `{"ends_in_seconds":-1}`, 422},
		{"POST /sandboxes", `{"wake_for_seconds":-1}`, 422}, {"POST /sandboxes", `{"hosts":["a"]}`, 422},
		{"GET /sandboxes/search?metadata=x", "", 422}, {"PATCH /sandboxes/one", "{}", 422},
		{"PATCH /sandboxes/one", `{"hosts":["a"]}`, 422},
		{"PATCH /sandboxes/one", `{"ends_in_seconds":1e99}`, 422},
		{"PATCH /sandboxes/none", `{"ends_in_seconds":9}`, 404},
		{"POST /sandboxes/none/pause", "", 404}, {"POST /sandboxes/a%20b/pause", "", 404},
		{"POST /sandboxes/none/resume", "", 404}, {"DELETE /sandboxes/none", "", 404},
		{"DELETE /sandboxes/..%2Fone", "", 404},
		{"GET /sandboxes/none", "", 404}, {"GET /sandboxes/one?x=1", "", 422},
		{"GET /sandboxes/one/egress?x=1", "", 422},
		{"DELETE /sandboxes/one?force=true", "", 422}, {"GET /openapi.json?x", "", 422},
		{"POST /sandboxes?sandbox_spec=small", "", 422}, {"POST /sandboxes/one/pause?x=1", "", 422},
		{"POST /sandboxes/one/resume?x=1", "", 422},
		{"GET /sandbox-specs/search?limit=0", "", 422}, {"GET /sandbox-specs", "", 422},
		{"GET /sandbox-specs" + many, "", 400},
	} {
		a.ask(t, "me", c.request, c.body, c.status, nil)
	}
	var page boxPage
	a.ask(t, "me", "GET /sandboxes/search", "", 200, &page)
	require.Len(t, page.Items, 1, "no wrong request has started a box")
}

// TestExplain shows that the error of a wrong argument names its parameter, as the request has it.
func TestExplain(t *testing.T) {
	require.EqualError(t, explain(invalidArgument("StartOptions.ID", "%q", "-")),
		`sandbox_id: "-"`)
	require.Equal(t, ErrConflict, explain(ErrConflict))
}

// TestHandlerElsewhere asks for paths and methods that do not exist. The answers are JSON too.
func TestHandlerElsewhere(t *testing.T) {
	s := open(t, "elsewhere", nil, small("small", nil))
	for request, want := range map[string]string{
		"GET /":             `404 {"code":"not_found","detail":"there is nothing at this path: see /openapi.json"}`,
		"PUT /sandboxes/b1": `405 {"code":"not_allowed","detail":"PUT is not allowed here: only DELETE, GET, PATCH"}`,
		"DELETE /sandboxes": `405 {"code":"not_allowed","detail":"DELETE is not allowed here: only GET, POST"}`,
	} {
		method, target, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		Handler(s, HandlerConfig{}).ServeHTTP(w, httptest.NewRequest(method, target, nil))
		require.Equal(t, want, fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String())))
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	}
}

// testForeign asks for a box as another owner.
func (a *httpClient) testForeign(t *testing.T) {
	for _, user := range []string{"you", ""} {
		var page boxPage
		a.ask(t, user, "GET /sandboxes/search", "", 200, &page)
		require.Empty(t, page.Items)
		var list []*boxJSON
		a.ask(t, user, "GET /sandboxes?id=one", "", 200, &list)
		require.Equal(t, []*boxJSON{nil}, list)
		var taken struct{ Detail string }
		a.ask(t, user, "POST /sandboxes?sandbox_id=one&sandbox_spec_id=other", "", 409, &taken)
		require.NotContains(t, taken.Detail, "small", "another owner learns nothing about a box "+
			"but that its id is taken")
		for _, request := range []string{"GET /sandboxes/one", "GET /sandboxes/one/egress",
			"POST /sandboxes/one/pause", "POST /sandboxes/one/resume", "POST /sandboxes/one/fork",
			"DELETE /sandboxes/one"} {
			a.ask(t, user, request, "", 404, nil)
		}
		a.ask(t, user, "PATCH /sandboxes/one", `{"ends_in_seconds":9}`, 404, nil)
		a.ask(t, user, "PATCH /sandboxes/one", `{"hosts":[]}`, 404, nil)
	}
	var list []*boxJSON
	a.ask(t, "me", "GET /sandboxes?id=one", "", 200, &list)
	require.Equal(t, Running, list[0].Status)
}

func (a *httpClient) testSpecs(t *testing.T) {
	var page struct{ Items []*specJSON }
	a.ask(t, "me", "GET /sandbox-specs/search", "", 200, &page)
	require.Len(t, page.Items, 2)
	require.Equal(t, map[string]string{"A": "1=2"}, page.Items[1].Env)
	require.Equal(t, dockertest.Busybox, page.Items[1].Image)
	require.Equal(t, limitsJSON{PIDs: 4096}, page.Items[1].Limits)
	require.Equal(t, "none", page.Items[1].Network)
	require.Equal(t, []portJSON{{"web", 80}}, page.Items[1].Ports)
	var list []*specJSON
	a.ask(t, "me", "GET /sandbox-specs?id=none&id=small", "", 200, &list)
	require.Nil(t, list[0])
	require.Equal(t, page.Items[1], list[1])
}

// testDown makes requests while neither the engine nor the store of specs answers.
func (a *httpClient) testDown(t *testing.T) {
	for _, request := range []string{
		"GET /sandboxes/search", "GET /sandboxes?id=one", "GET /sandboxes/one",
		"GET /sandboxes/one/egress", "POST /sandboxes?sandbox_spec_id=small",
		"POST /sandboxes/one/pause", "POST /sandboxes/one/resume", "POST /sandboxes/one/fork",
		"DELETE /sandboxes/one", "GET /sandbox-specs/search", "GET /sandbox-specs?id=small",
	} {
		a.ask(t, "", request, "", 503, nil)
	}
	a.ask(t, "", "PATCH /sandboxes/one", `{"ends_in_seconds":9}`, 503, nil)
}

// A pauseless place cannot pause or copy boxes.
type pauseless struct{ place.Place }

func (pauseless) Fork(context.Context, place.Attached, []place.Request, sandbox.LossKind) (
	[]place.Created, error) {
	return nil, fmt.Errorf("%w: nobody copies here", errors.ErrUnsupported)
}

func (pauseless) Pause(context.Context, string) error {
	return fmt.Errorf("%w: nobody pauses here", errors.ErrUnsupported)
}

// testUnsupported pauses a box that cannot be paused, and copies it.
func (a *httpClient) testUnsupported(t *testing.T) {
	a.ask(t, "", "POST /sandboxes?sandbox_spec_id=small&sandbox_id=one", "", 200, nil)
	a.ask(t, "", "POST /sandboxes/one/pause", "", 501, nil)
	a.ask(t, "", "POST /sandboxes/one/fork", "", 501, nil)
	a.ask(t, "", "DELETE /sandboxes/one", "", 200, nil)
}
