package service

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
)

// OpenAPI describes what Handler serves, in OpenAPI 3.1. Handler serves it at /openapi.json.
//
//go:embed openapi.json
var OpenAPI []byte

// A HandlerConfig says how a Handler works. The zero value serves all boxes to all clients.
type HandlerConfig struct {
	// Owner returns the owner that a request comes from, as the caller's middleware has found out.
	// A request starts boxes for that owner, and sees and changes only that owner's boxes. If Owner
	// is nil, every request sees all boxes.
	Owner func(*http.Request) string
	// Logger logs the failures that are answered with 503. Default: nothing is logged.
	Logger *slog.Logger
}

// Handler returns a handler that serves s over HTTP, as OpenAPI describes. Names and meanings are
// those of the sandboxes and sandbox-specs of OpenHands' application server, so its clients work.
// Additions are marked in OpenAPI. Handler does not authenticate clients: wrap it in middleware
// that does. Handler panics if s is nil.
//
// A request's body may have 1 MiB and take 30 s to arrive. Give the http.Server a
// ReadHeaderTimeout, an IdleTimeout and MaxHeaderBytes. A start may take longer than a
// WriteTimeout.
func Handler(s *Service, o HandlerConfig) http.Handler {
	o.Logger = guard.Logger(o.Logger)
	if s == nil {
		panic("service: Handler: the Service is nil")
	}
	h := &handler{s: s, o: o}
	mux := http.NewServeMux()
	for _, op := range []struct {
		method, path string
		parameters   []string
		serve        func(*http.Request) (any, error)
	}{
		{"GET", "/sandboxes/search", []string{"page_id", "limit", "sandbox_spec_id", "status",
			"use"}, h.search},
		{"GET", "/sandboxes", []string{"id"}, h.batchGet},
		{"POST", "/sandboxes", []string{"sandbox_spec_id", "sandbox_id"}, h.start},
		{"GET", "/sandboxes/{id}", nil, h.get},
		{"POST", "/sandboxes/{id}/pause", nil, h.change(s.Pause)},
		{"POST", "/sandboxes/{id}/resume", nil, h.change(s.Resume)},
		{"DELETE", "/sandboxes/{id}", nil, h.change(s.Delete)},
		{"GET", "/sandbox-specs/search", []string{"page_id", "limit"}, h.searchSpecs},
		{"GET", "/sandbox-specs", []string{"id"}, h.batchGetSpecs},
		{"GET", "/openapi.json", nil, func(*http.Request) (any, error) {
			return json.RawMessage(OpenAPI), nil
		}},
	} {
		mux.HandleFunc(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
			h.answer(w, r, func(r *http.Request) (any, error) {
				if err := checkQuery(r.URL.RawQuery, op.parameters); err != nil {
					return nil, err
				}
				return op.serve(r)
			})
		})
	}
	// Else net/http answers, and not in JSON.
	mux.HandleFunc(elsewhere, func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if _, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL,
				Host: r.Host}); pattern != elsewhere {
				allowed = append(allowed, method)
			}
		}
		if allowed == nil {
			write(w, http.StatusNotFound, detail("there is nothing at this path: /openapi.json "+
				"describes what there is"))
			return
		}
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		write(w, http.StatusMethodNotAllowed, detail(fmt.Sprintf("%s is not allowed here: only %s",
			r.Method, list)))
	})
	return mux
}

// checkQuery reports what is wrong with a query of an operation that has these parameters. Only
// id may be there more than once.
func checkQuery(raw string, parameters []string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return invalid("query", "%v", err)
	}
	for name, values := range query {
		if !slices.Contains(parameters, name) {
			return invalid("query", "there is no parameter %q: there are %q", name, parameters)
		}
		if len(values) > 1 && name != "id" {
			return invalid(name, "it is there %d times", len(values))
		}
	}
	if use := query.Get("use"); query.Has("use") && use != "true" && use != "false" {
		return invalid("use", "%q: it has to be true or false", use)
	}
	return nil
}

type handler struct {
	s *Service
	o HandlerConfig
}

var errBatch = fmt.Errorf("more than %d ids: ask for fewer at once", maxBatch)

// elsewhere is the pattern of all requests that no other matches.
const elsewhere = "/"

// bodyLimit is for how long the body of a request may take to arrive.
const bodyLimit = 30 * time.Second

func detail(text string) any { return map[string]string{"detail": text} }

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // there are session keys in it
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone does not read it
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request,
	serve func(*http.Request) (any, error)) {
	// It fails only where the server has no connection of its own, as in a test.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyLimit))
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	answer, err := serve(r)
	status := http.StatusOK
	if err != nil {
		switch {
		case r.Context().Err() != nil:
			return // nobody reads the answer
		case errors.Is(err, errBatch):
			status = http.StatusBadRequest
		case errors.Is(err, ErrInvalid):
			status = http.StatusUnprocessableEntity
		case errors.Is(err, ErrNotFound):
			status = http.StatusNotFound
		case errors.Is(err, ErrConflict):
			status = http.StatusConflict
		case errors.Is(err, errors.ErrUnsupported):
			status = http.StatusNotImplemented
		default:
			status = http.StatusServiceUnavailable
			h.o.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		answer = detail(err.Error())
	}
	write(w, status, answer)
}

func (h *handler) owner(r *http.Request) string {
	if h.o.Owner == nil {
		return ""
	}
	return h.o.Owner(r)
}

// sees reports whether the box is one that the request's owner may know of.
func (h *handler) sees(r *http.Request, info *Info) bool {
	return info != nil && (h.o.Owner == nil || info.Owner == h.o.Owner(r))
}

func (h *handler) search(r *http.Request) (any, error) {
	v := r.URL.Query()
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	page, err := h.s.Search(r.Context(), Query{
		Page: v.Get("page_id"), Limit: limit, Owner: h.owner(r), Spec: v.Get("sandbox_spec_id"),
		Status: Status(v.Get("status")), Use: v.Get("use") == "true",
	})
	if err != nil {
		return nil, err
	}
	items := make([]*boxJSON, 0, len(page.Items))
	for _, info := range page.Items {
		if h.sees(r, info) {
			items = append(items, toJSON(info))
		}
	}
	return pageJSON[*boxJSON]{items, nullable(page.Next)}, nil
}

func (h *handler) batchGet(r *http.Request) (any, error) {
	ids, err := idsOf(r)
	if err != nil {
		return nil, err
	}
	infos, err := h.s.BatchGet(r.Context(), ids)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	answer := make([]*boxJSON, len(infos))
	for i, info := range infos {
		if h.sees(r, info) {
			answer[i] = toJSON(info)
		}
	}
	return answer, nil
}

func (h *handler) get(r *http.Request) (any, error) {
	info, err := h.visible(r)
	if err != nil {
		return nil, err
	}
	return toJSON(info), nil
}

// visible returns the box of the request's id. If it is another owner's, the error is the one of a
// box that does not exist.
func (h *handler) visible(r *http.Request) (*Info, error) {
	id := r.PathValue("id")
	info, err := h.s.Get(r.Context(), id)
	if err == nil && !h.sees(r, info) {
		return nil, fmt.Errorf("box %q: %w", id, ErrNotFound)
	}
	return info, err
}

func (h *handler) start(r *http.Request) (any, error) {
	v := r.URL.Query()
	var body struct {
		Env map[string]string `json:"env"`
	}
	switch text, err := io.ReadAll(r.Body); { //bounded: by http.MaxBytesReader
	case err != nil:
		return nil, invalid("body", "%v", err)
	case len(text) > 0:
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&body); err != nil || !json.Valid(text) {
			return nil, invalid("body", "it is not {\"env\": {\"NAME\": \"value\"}}: %v", err)
		}
	}
	o := StartOptions{Spec: v.Get("sandbox_spec_id"), ID: v.Get("sandbox_id"), Owner: h.owner(r)}
	for name, value := range body.Env {
		if strings.Contains(name, "=") {
			return nil, invalid("body", "the variable %q: a name has no \"=\"", name)
		}
		o.Env = append(o.Env, name+"="+value)
	}
	info, err := h.s.Start(r.Context(), o)
	if err != nil {
		return nil, err
	}
	return toJSON(info), nil
}

// change serves Pause, Resume and Delete.
func (h *handler) change(method func(ctx context.Context, id string) error) func(
	*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if h.o.Owner != nil {
			if _, err := h.visible(r); err != nil {
				return nil, err
			}
		}
		if err := method(r.Context(), r.PathValue("id")); err != nil {
			return nil, err
		}
		return map[string]bool{"success": true}, nil
	}
}

func (h *handler) searchSpecs(r *http.Request) (any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	specs, next, err := h.s.Specs().Search(r.Context(), r.URL.Query().Get("page_id"), limit)
	if err != nil {
		return nil, err
	}
	items := make([]*specJSON, len(specs))
	for i, s := range specs {
		items[i] = s.toJSON()
	}
	return pageJSON[*specJSON]{items, nullable(next)}, nil
}

func (h *handler) batchGetSpecs(r *http.Request) (any, error) {
	ids, err := idsOf(r)
	if err != nil {
		return nil, err
	}
	specs, err := h.s.Specs().BatchGet(r.Context(), ids)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	answer := make([]*specJSON, len(specs))
	for i, s := range specs {
		if s != nil {
			answer[i] = s.toJSON()
		}
	}
	return answer, nil
}

// limitOf returns the limit that a request gives; 100 if it gives none.
func limitOf(r *http.Request) (int, error) {
	v := r.URL.Query()
	if !v.Has("limit") {
		return maxBatch, nil
	}
	limit, err := strconv.Atoi(v.Get("limit"))
	if err != nil || limit < 1 || limit > maxBatch {
		return 0, invalid("limit", "%q: it has to be a number from 1 to %d", v.Get("limit"),
			maxBatch)
	}
	return limit, nil
}

// idsOf returns the ids that a request asks for.
func idsOf(r *http.Request) ([]string, error) {
	ids := r.URL.Query()["id"]
	switch {
	case len(ids) == 0:
		return nil, invalid("id", "it is missing: say ?id=A&id=B")
	case len(ids) > maxBatch:
		return nil, errBatch
	}
	return ids, nil
}
