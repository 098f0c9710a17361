package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

type (
	query struct {
		IDs   []string `query:"id"`
		Limit *int64   `query:"limit"`
		All   bool     `query:"all"`
		Name  string   `query:"name"`
	}
	body struct {
		Command string  `spec:"command"`
		Seconds float64 `spec:"seconds"`
	}
)

func TestOperations(t *testing.T) {
	handler := Handler(Config{Logger: slog.New(slog.DiscardHandler), BodyLimit: time.Minute},
		[]Operation{
			On("POST", "/things/{id}", func(_ http.ResponseWriter, r *http.Request, q *query,
				b *body) (any, error) {
				limit := int64(-1)
				if q.Limit != nil {
					limit = *q.Limit
				}
				return fmt.Sprintf("%s %v %d %v %q %v", r.PathValue("id"), q.IDs, limit, q.All,
					q.Name, *b), nil
			}),
			On("GET", "/busy", func(http.ResponseWriter, *http.Request, *None,
				*None) (any, error) {
				return nil, fmt.Errorf("execute x: %w", sandbox.ErrBusy)
			}),
			On("GET", "/failed", func(http.ResponseWriter, *http.Request, *None,
				*None) (any, error) {
				return nil, errors.New("no engine")
			}),
		})
	for _, c := range []struct{ request, body, want string }{
		{"POST /things/1", "", `200 "1 [] -1 false \"\" { 0}"`},
		{"POST /things/1?id=a&id=b&limit=0&all=true&name=n", ` {"command":"x","seconds":1.5}`,
			`200 "1 [a b] 0 true \"n\" {x 1.5}"`},
		{"POST /things/1?limt=1", "", `422 {"code":"invalid","detail":"query: there is no ` +
			`parameter \"limt\": did you mean \"limit\"?"}`},
		{"POST /things/1?x=1", "", `422 {"code":"invalid","detail":"query: there is no ` +
			`parameter \"x\": there are id, limit, all, name"}`},
		{"GET /busy?x", "", `422 {"code":"invalid","detail":"query: there is no parameter ` +
			`\"x\": the request takes none"}`},
		{"POST /things/1?limit=1&limit=2", "",
			`422 {"code":"invalid","detail":"limit: it occurs 2 times: give it once"}`},
		{"POST /things/1?limit=many", "",
			`422 {"code":"invalid","detail":"limit: \"many\": write a whole number"}`},
		{"POST /things/1?all", "",
			`422 {"code":"invalid","detail":"all: \"\": write true or false"}`},
		{"POST /things/1?name=%zz", "",
			`422 {"code":"invalid","detail":"query: invalid URL escape \"%zz\""}`},
		{"POST /things/1", `{"comand":"x"}`, `422 {"code":"invalid","detail":"body: line 1: ` +
			`comand: there is no such key: did you mean \"command\"?"}`},
		{"POST /things/1", `{"command":1}`,
			`422 {"code":"invalid","detail":"body: line 1: command: 1 is not a text"}`},
		{"POST /things/1", `{} {}`, `422 {"code":"invalid","detail":"body: line 1: it is not ` +
			`JSON: there is text after its end"}`},
		{"POST /things/1", strings.Repeat(" ", maxBody+1),
			`422 {"code":"invalid","detail":"body: http: request body too large"}`},
		{"GET /busy", "", `409 {"code":"busy","detail":"execute x: a command is unfinished: ` +
			`Wait, Input or Interrupt it, or Open a second session"}`},
		{"GET /failed", "", `503 {"code":"unavailable","detail":"no engine"}`},
		{"GET /things/1", "",
			`405 {"code":"not_allowed","detail":"GET is not allowed here: only POST"}`},
		{"GET /", "", `404 {"code":"not_found","detail":"there is nothing at this path: see ` +
			`/openapi.json"}`},
	} {
		method, target, _ := strings.Cut(c.request, " ")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(c.body)))
		require.Equal(t, c.want, fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String())),
			c.request)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"), c.request)
	}
}
