package service

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
	"github.com/sandshell/sandshell/service/internal/deeds"
	"github.com/sandshell/sandshell/service/place"
)

// OpenAPI describes what Handler serves, in OpenAPI 3.1. Handler serves it at /openapi.json.
//
//go:embed openapi.json
var OpenAPI []byte

// A HandlerConfig says how a Handler works. The zero value serves all boxes to all clients.
type HandlerConfig struct {
	// Owner returns the owner that a request comes from, which the caller's middleware knows. A
	// request starts boxes for that owner, and sees and changes only that owner's boxes. If Owner
	// is nil, every request sees all boxes.
	Owner func(*http.Request) string
	// Origins are patterns, of path.Match, of the hosts whose pages may open terminals, beside the
	// host that the request is for. "*" lets the pages of all sites, which must not be if the
	// middleware knows clients by a cookie. Default: none.
	Origins []string
	// Egress lets clients give a new box rules of what it may reach, beside those of its spec: see
	// StartOptions.Egress. A rule of a client may be for any public host. Default: they may not.
	// Clients may always narrow the rules of their boxes, and widen them again: see
	// Service.SetHosts.
	Egress bool
	// Logger logs the failures that are answered with 503. Default: nothing is logged.
	Logger *slog.Logger

	bodyLimit   time.Duration // how long a body of JSON may take to arrive; 0 means 30 s
	maxRequests int           // about one box at once; 0 means the default
	maxUpload   int64         // in bytes; 0 means the default
}

// Handler returns a handler that serves s over HTTP, as OpenAPI describes. Names and meanings are
// those of the sandboxes and sandbox-specs of OpenHands' application server, so its clients work.
// Additions are marked in OpenAPI. Handler does not authenticate clients: wrap it in middleware
// that does. Handler panics if s is nil.
//
// A request's body of JSON may have 1 MiB and take 30 s to arrive. Give the http.Server a
// ReadHeaderTimeout, an IdleTimeout and MaxHeaderBytes. A start may take longer than a
// WriteTimeout.
func Handler(s *Service, c HandlerConfig) http.Handler {
	if s == nil {
		panic("service: Handler: s is nil: give the Service")
	}
	h := &handler{service: s, config: c}
	return api.Handler(api.Config{Logger: guard.Logger(c.Logger), Explain: explain,
		BodyLimit: cmp.Or(c.bodyLimit, bodyLimit)}, h.operations())
}

// bodyLimit is how long a body of JSON may take to arrive by default.
const bodyLimit = 30 * time.Second

type handler struct {
	service *Service
	config  HandlerConfig
}

func (h *handler) operations() []api.Operation {
	s := h.service
	return append([]api.Operation{
		api.On("GET", "/sandboxes/search", h.search),
		api.On("GET", "/sandboxes", h.batchGet),
		api.On("POST", "/sandboxes", h.start),
		api.On("GET", "/sandboxes/{id}", h.get),
		api.On("PATCH", "/sandboxes/{id}", h.set),
		api.On("GET", "/sandboxes/{id}/egress", h.egress),
		api.On("POST", "/sandboxes/{id}/pause", h.change(s.Pause)),
		api.On("POST", "/sandboxes/{id}/resume", h.change(s.Resume)),
		api.On("POST", "/sandboxes/{id}/fork", h.fork),
		api.On("DELETE", "/sandboxes/{id}", h.change(s.Delete)),
		api.On("GET", "/sandbox-specs/search", h.searchSpecs),
		api.On("GET", "/sandbox-specs", h.batchGetSpecs),
		api.On("GET", "/openapi.json", func(http.ResponseWriter, *http.Request, *api.None,
			*api.None) (any, error) {
			return json.RawMessage(OpenAPI), nil
		}),
	}, deeds.Operations(deeds.Config{Open: h.open, MaxRequests: h.config.maxRequests,
		MaxUpload: h.config.maxUpload, Origins: h.config.Origins})...)
}

var errBatch = api.Errorf(http.StatusBadRequest, "invalid",
	"more than %d ids: ask for fewer at once", maxBatch)

// parameterOf maps the fields of arguments to the parameters of requests that set them.
var parameterOf = map[string]string{
	"StartOptions.ID": "sandbox_id", "StartOptions.Spec": "sandbox_spec_id",
	"StartOptions.Env": "env", "StartOptions.Metadata": "metadata",
	"StartOptions.Ends": "ends_in_seconds", "end": "ends_in_seconds",
	"StartOptions.PauseAtEnd": "pause_at_end", "StartOptions.WakeFor": "wake_for_seconds",
	"ForkOptions.IDs": "sandbox_ids", "ForkOptions.Env": "env", "n": "count",
	"ForkOptions.Metadata": "metadata", "ForkOptions.Ends": "ends_in_seconds",
	"Query.Limit": "limit", "Query.Page": "page_id", "Query.Status": "status",
}

// explain returns an error about an argument of this package as one about the request's parameter.
// It returns other errors as they are.
func explain(err error) error {
	var e *InvalidError
	if !errors.As(err, &e) {
		return err
	}
	for field, name := range map[string]string{"StartOptions.Egress": "egress",
		"StartOptions.Hosts": "hosts"} {
		if at, ok := strings.CutPrefix(e.Field, field); ok {
			return api.Invalid(name+at, "%s", e.Reason)
		}
	}
	return api.Invalid(cmp.Or(parameterOf[e.Field], e.Field), "%s", e.Reason)
}

func (h *handler) owner(r *http.Request) string {
	if h.config.Owner == nil {
		return ""
	}
	return h.config.Owner(r)
}

// sees reports whether the box is one that the request's owner may know of.
func (h *handler) sees(r *http.Request, info *Info) bool {
	return info != nil && (h.config.Owner == nil || info.Owner == h.config.Owner(r))
}

// A pageQuery asks for a page.
type pageQuery struct {
	Page  string `query:"page_id"`
	Limit *int64 `query:"limit"`
}

// limitOf returns the limit of a page. Default: 100.
func limitOf(limit *int64) (int, error) {
	if limit == nil {
		return maxBatch, nil
	}
	if *limit < 1 || *limit > maxBatch {
		return 0, api.Invalid("limit", "%d: write a number from 1 to %d", *limit, maxBatch)
	}
	return int(*limit), nil
}

type searchQuery struct {
	Page   string `query:"page_id"`
	Limit  *int64 `query:"limit"`
	Spec   string `query:"sandbox_spec_id"`
	Status string `query:"status"`
	Use    bool   `query:"use"`

	Metadata []string `query:"metadata"`
}

func (h *handler) search(_ http.ResponseWriter, r *http.Request, q *searchQuery,
	_ *api.None) (any, error) {
	limit, err := limitOf(q.Limit)
	if err != nil {
		return nil, err
	}
	metadata := map[string]string{}
	for _, text := range q.Metadata {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, api.Invalid("metadata", "%q: write NAME=VALUE", text)
		}
		metadata[name] = value
	}
	page, err := h.service.Search(r.Context(), Query{Page: q.Page, Limit: limit,
		Owner: h.owner(r), Spec: q.Spec, Status: Status(q.Status), Use: q.Use, Metadata: metadata})
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

// A batchQuery asks for things by their ids.
type batchQuery struct {
	IDs []string `query:"id"`
}

// check returns an error if no ids are given or too many. search is the path that lists all.
func (q *batchQuery) check(search string) error {
	switch {
	case len(q.IDs) == 0:
		return api.Invalid("id", "it is missing: write ?id=ID, as often as there are ids; GET %s "+
			"lists all", search)
	case len(q.IDs) > maxBatch:
		return errBatch
	}
	return nil
}

func (h *handler) batchGet(_ http.ResponseWriter, r *http.Request, q *batchQuery,
	_ *api.None) (any, error) {
	if err := q.check("/sandboxes/search"); err != nil {
		return nil, err
	}
	infos, err := h.service.BatchGet(r.Context(), q.IDs)
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

func (h *handler) get(_ http.ResponseWriter, r *http.Request, _, _ *api.None) (any, error) {
	info, err := h.visible(r)
	if err != nil {
		return nil, err
	}
	return toJSON(info), nil
}

// visible returns the box of the request's id. If the box is another owner's, the error is that of
// a box that does not exist.
func (h *handler) visible(r *http.Request) (*Info, error) {
	id := r.PathValue("id")
	info, err := h.service.Get(r.Context(), id)
	if err == nil && !h.sees(r, info) {
		return nil, fmt.Errorf("box %q: %w", id, ErrNotFound)
	}
	return info, err
}

// open returns the running box of the request's id. The caller calls done when the request no
// longer uses it.
func (h *handler) open(r *http.Request) (_ sandbox.Sandbox, done func(), err error) {
	id := r.PathValue("id")
	box, err := h.service.openKnown(r.Context(), id, func(of *place.Record) bool {
		return h.config.Owner == nil || of.Note != nil && of.Note.Owner == h.config.Owner(r)
	})
	if err != nil {
		return nil, nil, err
	}
	return box, h.service.Used(id), nil
}

// change serves Pause, Resume and Delete.
func (h *handler) change(method func(ctx context.Context, id string) error) func(
	http.ResponseWriter, *http.Request, *api.None, *api.None) (any, error) {
	return func(_ http.ResponseWriter, r *http.Request, _, _ *api.None) (any, error) {
		if h.config.Owner != nil {
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

func (h *handler) searchSpecs(_ http.ResponseWriter, r *http.Request, q *pageQuery,
	_ *api.None) (any, error) {
	limit, err := limitOf(q.Limit)
	if err != nil {
		return nil, err
	}
	specs, next, err := h.service.Specs().Search(r.Context(), q.Page, limit)
	if err != nil {
		return nil, err
	}
	items := make([]*specJSON, len(specs))
	for i, s := range specs {
		items[i] = s.toJSON()
	}
	return pageJSON[*specJSON]{items, nullable(next)}, nil
}

func (h *handler) batchGetSpecs(_ http.ResponseWriter, r *http.Request, q *batchQuery,
	_ *api.None) (any, error) {
	if err := q.check("/sandbox-specs/search"); err != nil {
		return nil, err
	}
	specs, err := h.service.Specs().BatchGet(r.Context(), q.IDs)
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
