// Package api serves operations of HTTP with JSON. What is in a request and not in the operation's
// description is an error that names it. All errors have one form.
package api

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/specfile"
)

// A Config says how operations are served.
type Config struct {
	// Logger logs the failures that are answered with 503.
	Logger *slog.Logger
	// Explain returns what an operation's error is answered with, an *Error for example.
	Explain func(error) error
	// BodyLimit is how long a body of JSON may take to arrive.
	BodyLimit time.Duration
}

// maxBody is the greatest size of a body of JSON, in bytes.
const maxBody = 1 << 20

// An Operation is a method of a path.
type Operation struct {
	Method, Path string
	// Query and Body point to structs like those that a request's query and body are decoded into,
	// by the tags "query" and "spec".
	Query, Body any

	serve func(s *server, w http.ResponseWriter, r *http.Request) error
}

// None is the query or the body of a request that has none.
type None struct{}

// Bytes is the body of a request that is no JSON. The operation reads Request.Body.
type Bytes struct{}

// On returns an operation. serve returns what is answered as JSON. If it returns nil, nil, it has
// answered by w itself.
func On[Q, B any](method, path string, serve func(w http.ResponseWriter, r *http.Request, query *Q,
	body *B) (any, error)) Operation {
	op := Operation{Method: method, Path: path, Query: new(Q), Body: new(B)}
	op.serve = func(s *server, w http.ResponseWriter, r *http.Request) error {
		var query Q
		if err := decodeQuery(r.URL.RawQuery, &query); err != nil {
			return err
		}
		var body B
		if _, ok := any(&body).(*Bytes); !ok {
			if err := s.decodeBody(w, r, &body); err != nil {
				return err
			}
		}
		answer, err := serve(w, r, &query, &body)
		if err == nil && answer != nil {
			write(w, http.StatusOK, answer)
		}
		return err
	}
	return op
}

// Handler serves operations.
func Handler(c Config, ops []Operation) http.Handler {
	s := &server{c}
	mux := http.NewServeMux()
	var methods []string
	for _, op := range ops {
		if !slices.Contains(methods, op.Method) {
			methods = append(methods, op.Method)
		}
		mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
			if err := op.serve(s, w, r); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	slices.Sort(methods)
	// Without this pattern, net/http would answer, and not in JSON.
	mux.HandleFunc(elsewhere, func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range methods {
			if _, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL,
				Host: r.Host}); pattern != elsewhere {
				allowed = append(allowed, method)
			}
		}
		if allowed == nil {
			s.fail(w, r, Errorf(http.StatusNotFound, "not_found",
				"there is nothing at this path: see /openapi.json"))
			return
		}
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		s.fail(w, r, Errorf(http.StatusMethodNotAllowed, "not_allowed",
			"%s is not allowed here: only %s", r.Method, list))
	})
	return mux
}

// elsewhere is the pattern of all requests that no operation matches.
const elsewhere = "/"

type server struct{ Config }

// fail answers with an error.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if s.Explain != nil {
		err = s.Explain(err)
	}
	e := ErrorOf(err)
	if e.Status == http.StatusServiceUnavailable && r.Context().Err() == nil {
		s.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	write(w, e.Status, e)
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // the answer may have session keys
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone does not read it
}

// decodeBody reads a request's body into memory, and decodes it. Then it lifts the deadline of the
// connection. There net/http goes on reading, to see whether the client goes away. At a deadline,
// it would cancel the request.
func (s *server) decodeBody(w http.ResponseWriter, r *http.Request, body any) error {
	// SetReadDeadline fails only if there is no connection, as with httptest.ResponseRecorder.
	conn := http.NewResponseController(w)
	if r.Body != http.NoBody {
		_ = conn.SetReadDeadline(time.Now().Add(s.BodyLimit))
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return Invalid("body", "%v", err)
	}
	_ = conn.SetReadDeadline(time.Time{}) // also that of http.Server.ReadTimeout
	if _, none := body.(*None); none || len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if err := specfile.JSON.DecodeTyped(text, body); err != nil {
		return Invalid("body", "%v", err)
	}
	return nil
}
