package service

import (
	"net/http"
	"time"

	"github.com/sandshell/sandshell/service/internal/api"
)

type (
	startQuery struct {
		Spec string `query:"sandbox_spec_id"`
		ID   string `query:"sandbox_id"`
	}
	startBody struct {
		Env        map[string]string `spec:"env"`
		Metadata   map[string]string `spec:"metadata"`
		Ends       float64           `spec:"ends_in_seconds"`
		PauseAtEnd bool              `spec:"pause_at_end"`
		WakeFor    float64           `spec:"wake_for_seconds"`
		Egress     []string          `spec:"egress"`
		Hosts      []string          `spec:"hosts"`
	}
	setBody struct {
		Ends  *float64  `spec:"ends_in_seconds"`
		Hosts *[]string `spec:"hosts"`
	}
)

// start serves Start.
func (h *handler) start(_ http.ResponseWriter, r *http.Request, q *startQuery,
	body *startBody) (any, error) {
	env, err := api.Variables("env", body.Env)
	if err != nil {
		return nil, err
	}
	ends, err := endIn(body.Ends)
	if err != nil {
		return nil, err
	}
	wake, err := durationOf("wake_for_seconds", body.WakeFor, "write seconds", "the spec decides")
	if err != nil {
		return nil, err
	}
	rules, err := h.clientRules(body.Egress)
	if err != nil {
		return nil, err
	}
	info, err := h.service.Start(r.Context(), StartOptions{Spec: q.Spec, ID: q.ID,
		Owner: h.owner(r), Env: env, Metadata: body.Metadata, Ends: ends,
		PauseAtEnd: body.PauseAtEnd, WakeFor: wake, Egress: rules, Hosts: body.Hosts})
	if err != nil {
		return nil, err
	}
	return toJSON(info), nil
}

// endIn returns the end of a box from the seconds until then. 0 means no end.
func endIn(seconds float64) (end time.Time, err error) {
	left, err := durationOf("ends_in_seconds", seconds, "write seconds from now",
		"the box has no end")
	if err != nil || left == 0 {
		return end, err
	}
	return time.Now().Add(left), nil
}

// durationOf returns the duration that a parameter gives in seconds. An error says what to write,
// and what 0 means.
func durationOf(name string, seconds float64, write, zero string) (time.Duration, error) {
	const most = 100 * 365 * 24 * 60 * 60
	if seconds < 0 || seconds > most {
		return 0, api.Invalid(name, "%v: %s, at most %d; 0 means that %s", seconds, write, most,
			zero)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// set serves SetEnd and SetHosts.
func (h *handler) set(_ http.ResponseWriter, r *http.Request, _ *api.None,
	body *setBody) (any, error) {
	if body.Ends == nil && body.Hosts == nil {
		return nil, api.Invalid("body", "it changes nothing: give ends_in_seconds or hosts")
	}
	var end time.Time
	if body.Ends != nil {
		var err error
		if end, err = endIn(*body.Ends); err != nil {
			return nil, err
		}
	}
	info, err := h.visible(r)
	if err != nil {
		return nil, err
	}
	if body.Hosts != nil { // first: of the two, this is what may be refused
		if err := h.service.SetHosts(r.Context(), info.ID, *body.Hosts); err != nil {
			return nil, err
		}
	}
	if body.Ends != nil {
		if err := h.service.SetEnd(r.Context(), info.ID, end); err != nil {
			return nil, err
		}
	}
	return h.get(nil, r, nil, nil)
}
