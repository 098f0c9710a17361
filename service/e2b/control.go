package e2b

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/service"
)

// A request is one of the control plane.
type request struct {
	*handler
	w     http.ResponseWriter
	r     *http.Request
	owner string
}

// controlPlane returns the handler of the control plane.
func (h *handler) controlPlane() http.Handler {
	m := http.NewServeMux()
	on := func(pattern string, f func(*request) error) {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			owner, ok := h.config.Keys(r.Header.Get("X-Api-Key"))
			if !ok {
				fail(w, http.StatusUnauthorized, "the API key is missing or wrong: send it as "+
					"X-API-KEY")
				return
			}
			q := &request{h, w, r, owner}
			err := f(q)
			if err == nil {
				q.logCall()
			} else {
				var e *statusError
				if errors.As(err, &e) {
					fail(w, e.status, "%s", e.text)
				} else {
					h.failWith(w, err)
				}
			}
		})
	}
	for _, version := range []string{"", "/v2"} {
		on("POST "+version+"/sandboxes", (*request).create)
		on("GET "+version+"/sandboxes", (*request).list)
		on("POST "+version+"/sandboxes/{id}/connect", (*request).connect)
	}
	on("GET /sandboxes/{id}", (*request).get)
	on("DELETE /sandboxes/{id}", (*request).kill)
	on("POST /sandboxes/{id}/timeout", (*request).setTimeout)
	on("POST /sandboxes/{id}/refreshes", (*request).refresh)
	on("POST /sandboxes/{id}/pause", (*request).pause)
	on("POST /sandboxes/{id}/resume", (*request).resume)
	on("GET /sandboxes/{id}/metrics", (*request).metrics)
	on("POST /sandboxes/{id}/snapshots", (*request).snapshot)
	on("POST /sandboxes/{id}/fork", (*request).fork)
	on("PUT /sandboxes/{id}/network", (*request).setNetwork)
	on("GET /sandboxes/{id}/logs", (*request).logsOne)
	on("GET /v2/sandboxes/{id}/logs", (*request).logsTwo)
	on("GET /snapshots", (*request).snapshotList)
	on("GET /templates", (*request).templates)
	on("GET /templates/aliases/{template...}", (*request).alias)
	on("DELETE /templates/{template...}", (*request).deleteTemplate)
	for _, path := range []string{"/templates", "/v2/templates", "/v3/templates"} {
		on("POST "+path, (*request).build)
		on("POST "+path+"/", (*request).build)
	}
	m.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	on("/", func(q *request) error {
		return statusf(http.StatusNotImplemented, "%s %s is not served here: docs/e2b.md of "+
			"sandshell says what is", q.r.Method, q.r.URL.Path)
	})
	return m
}

// A statusError is an error that is answered with a status of HTTP.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func statusf(status int, format string, args ...any) error {
	return &statusError{status, fmt.Sprintf(format, args...)}
}

// maxBody bounds the body of a request of the control plane, in bytes.
const maxBody = 1 << 20

// body decodes the request's body, and returns the fields that v has not. An empty body is {}.
func (q *request) body(v any) (rest map[string]json.RawMessage, err error) {
	_ = http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(requestLimit))
	text, err := bounded.ReadAll(q.r.Body, "the body", maxBody)
	_ = http.NewResponseController(q.w).SetReadDeadline(time.Time{})
	if err == nil && len(text) > 0 {
		if err = json.Unmarshal(text, v); err == nil {
			err = json.Unmarshal(text, &rest)
		}
	}
	if err != nil {
		return nil, statusf(http.StatusBadRequest, "the body: %v", err)
	}
	return rest, nil
}

// isUnset reports whether a value is one that clients send for what nobody has asked for: null,
// false, an empty text, or a list or object that has only such values.
func isUnset(value json.RawMessage) bool {
	var v any
	_ = json.Unmarshal(value, &v) // it was decoded before
	return unset(v)
}

func unset(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, item := range v {
			if !unset(item) {
				return false
			}
		}
		return true
	}
	return false
}

// visible returns the box of the request's id, if it is one of the owner's.
func (q *request) visible() (*service.Info, error) {
	id := q.r.PathValue("id")
	info, err := q.config.Service.Get(q.r.Context(), id)
	if err == nil && info.Owner != q.owner {
		err = service.ErrNotFound
	}
	if errors.Is(err, service.ErrNotFound) {
		return nil, statusf(http.StatusNotFound, "sandbox %q not found", id)
	}
	return info, err
}

// maxTimeout bounds a timeout: a hundred years.
const maxTimeout = 100 * 365 * 24 * 60 * 60

// endAfter returns the end of a box whose timeout begins now.
func endAfter(seconds int64) (time.Time, error) {
	if seconds < 1 || seconds > maxTimeout {
		return time.Time{}, statusf(http.StatusBadRequest, "timeout: %d: give seconds from 1 to "+
			"%d; DELETE removes a sandbox at once", seconds, maxTimeout)
	}
	return time.Now().Add(time.Duration(seconds) * time.Second), nil
}

func (q *request) get() error {
	info, err := q.visible()
	if err != nil {
		return err
	}
	d := e2b.Detail{Listed: q.listed(info), EnvdAccessToken: q.token(info.ID),
		Lifecycle: lifecycle(info), Network: networkOf(info)}
	if q.config.Domain != "" {
		d.Domain = &q.config.Domain
	}
	answerJSON(q.w, http.StatusOK, d)
	return nil
}

// noEnd is the end of a box that has none.
var noEnd = time.Date(2199, 12, 31, 0, 0, 0, 0, time.UTC)

// listed describes a box.
func (q *request) listed(info *service.Info) e2b.Listed {
	l := e2b.Listed{TemplateID: info.Spec, Alias: info.Spec, SandboxID: info.ID,
		ClientID: "sandshell", StartedAt: info.Created.UTC(), EndAt: info.Ends.UTC(),
		Metadata: info.Metadata, State: e2b.StateRunning, EnvdVersion: e2b.EnvdVersion}
	if info.Ends.IsZero() {
		l.EndAt = noEnd
	}
	if info.Status == service.Paused {
		l.State = e2b.StatePaused
	}
	spec, err := q.config.Service.Specs().Get(q.r.Context(), info.Spec)
	if err == nil && spec != nil { // 0 says that there is no limit, or that it is not known
		l.CPUCount = int32(math.Ceil(spec.Config.CPUs))
		l.MemoryMB = int32(spec.Config.Memory >> 20)
	}
	return l
}

// list answers with a page of boxes. Version 1 has the boxes that run.
func (q *request) list() error {
	query := q.r.URL.Query()
	find := service.Query{Page: query.Get("nextToken"), Owner: q.owner}
	if text := query.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 1 || limit > 100 {
			return statusf(http.StatusBadRequest, "limit: %q: give 1 to 100", text)
		}
		find.Limit = limit
	}
	want, err := url.ParseQuery(query.Get("metadata"))
	if err != nil {
		return statusf(http.StatusBadRequest, "metadata: %v", err)
	}
	if len(want) > 0 {
		find.Metadata = map[string]string{}
		for name := range want {
			find.Metadata[name] = want.Get(name)
		}
	}
	states := map[string]bool{}
	for _, value := range query["state"] {
		for state := range strings.SplitSeq(value, ",") {
			states[state] = true
		}
	}
	if q.r.URL.Path == "/sandboxes" {
		states = map[string]bool{e2b.StateRunning: true}
	}
	switch {
	case len(states) != 1:
	case states[e2b.StateRunning]:
		find.Status = service.Running
	case states[e2b.StatePaused]:
		find.Status = service.Paused
	}
	for state := range states {
		if state != e2b.StateRunning && state != e2b.StatePaused {
			return statusf(http.StatusBadRequest, "state: %q: give running or paused", state)
		}
	}
	items := []e2b.Listed{}
	page, err := q.config.Service.Search(q.r.Context(), find)
	if err != nil {
		return err
	}
	for _, info := range page.Items {
		if info.Owner == q.owner && (info.Status == service.Running ||
			info.Status == service.Paused) {
			items = append(items, q.listed(info))
		}
	}
	if page.Next != "" {
		q.w.Header().Set("X-Next-Token", page.Next)
	}
	answerJSON(q.w, http.StatusOK, items)
	return nil
}
