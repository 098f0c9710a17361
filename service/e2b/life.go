package e2b

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/service"
)

// defaultTimeout is the timeout of a sandbox if the client gives none, in seconds. E2B's SDKs say
// so.
const defaultTimeout = 300

// create starts a box.
func (q *request) create() error {
	var body e2b.NewSandbox
	rest, err := q.body(&body)
	if err != nil {
		return err
	}
	if keep := rest["autoPauseMemory"]; keep != nil && string(keep) == "false" {
		return statusf(http.StatusNotImplemented, "autoPauseMemory: false is not served here: a "+
			"pause keeps the programs")
	}
	if err := unserved("", rest, "templateID", "timeout", "secure", "allow_internet_access",
		"metadata", "envVars", "autoPause", "autoPauseMemory", "autoResume",
		"network"); err != nil {
		return err
	}
	var network map[string]json.RawMessage
	_ = json.Unmarshal(rest["network"], &network) // it was decoded before
	if err := unserved("network.", network, "allowOut", "denyOut", "egressProxy", "rules",
		"allowPublicTraffic", "maskRequestHost"); err != nil {
		return err
	}
	spec, err := q.specOf(body.TemplateID)
	if err != nil {
		return err
	}
	hosts, err := q.hosts(spec, body.Network, body.Internet)
	if err != nil {
		return err
	}
	timeout := int64(defaultTimeout)
	if body.Timeout != nil {
		timeout = *body.Timeout
	}
	ends, err := endAfter(timeout)
	if err != nil {
		return err
	}
	o := service.StartOptions{Spec: spec.ID, Owner: q.owner, Metadata: body.Metadata, Ends: ends,
		PauseAtEnd: body.AutoPause, WakeFor: wakeFor(&body, timeout), Hosts: hosts}
	for _, name := range slices.Sorted(maps.Keys(body.EnvVars)) {
		o.Env = append(o.Env, name+"="+body.EnvVars[name])
	}
	info, err := q.config.Service.Start(q.r.Context(), o)
	if err != nil {
		return err
	}
	answerJSON(q.w, http.StatusCreated, q.sandbox(info))
	return nil
}

// unserved returns an error that names a field that is set and not known.
func unserved(before string, fields map[string]json.RawMessage, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) && !isUnset(fields[name]) {
			return statusf(http.StatusNotImplemented, "%s%s is not served here: leave it out",
				before, name)
		}
	}
	return nil
}

// specOf returns the spec of a template.
func (q *request) specOf(template string) (*service.Spec, error) {
	id, ok := q.config.Templates[template]
	if !ok {
		id = template
	}
	specs := q.config.Service.Specs()
	spec, err := specs.Get(q.r.Context(), id)
	if template == "base" && !ok && errors.Is(err, service.ErrNotFound) {
		spec, err = specs.Default(q.r.Context())
	}
	if errors.Is(err, service.ErrNotFound) || err == nil && (spec == nil || q.hidden(spec)) {
		return nil, statusf(http.StatusNotFound, "template %q not found: name a spec", template)
	}
	return spec, err
}

// sandbox says how to reach a box.
func (q *request) sandbox(info *service.Info) e2b.Sandbox {
	s := e2b.Sandbox{TemplateID: info.Spec, Alias: info.Spec, SandboxID: info.ID,
		ClientID: "sandshell", EnvdVersion: e2b.EnvdVersion, EnvdAccessToken: q.token(info.ID)}
	if !q.config.PublicPorts {
		traffic := q.trafficToken(info.ID)
		s.TrafficAccessToken = &traffic
	}
	if q.config.Domain != "" {
		s.Domain = &q.config.Domain
	}
	return s
}

func (q *request) kill() error {
	info, err := q.visible()
	if err != nil {
		return err
	}
	if err := q.config.Service.Delete(q.r.Context(), info.ID); err != nil {
		return err
	}
	q.states.cut(info.ID)
	q.logs.drop(info.ID)
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// setTimeout sets the end of a box that runs, earlier or later.
func (q *request) setTimeout() error {
	var body e2b.Timeout
	if _, err := q.body(&body); err != nil {
		return err
	}
	info, err := q.visible()
	if err != nil {
		return err
	}
	if info.Status != service.Running {
		return statusf(http.StatusNotFound, "sandbox %q does not run", info.ID)
	}
	ends, err := endAfter(body.Timeout)
	if err == nil {
		err = q.config.Service.SetEnd(q.r.Context(), info.ID, ends)
	}
	if err == nil {
		q.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// extend makes the end of a box later, if a timeout from now on does.
func (q *request) extend(info *service.Info, seconds int64) error {
	ends, err := endAfter(seconds)
	if err != nil || !info.Ends.IsZero() && !ends.After(info.Ends) {
		return err
	}
	return q.config.Service.SetEnd(q.r.Context(), info.ID, ends)
}

// refresh extends the life of a box.
func (q *request) refresh() error {
	var body struct {
		Duration int64 `json:"duration"` // seconds
	}
	if _, err := q.body(&body); err != nil {
		return err
	}
	info, err := q.visible()
	if err == nil {
		err = q.extend(info, body.Duration)
	}
	if err == nil {
		q.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// pause pauses a box. It has no end until it is resumed.
func (q *request) pause() error {
	rest, err := q.body(&struct{}{})
	if err != nil {
		return err
	}
	info, err := q.visible()
	if err != nil {
		return err
	}
	if m := rest["memory"]; m != nil && string(m) == "false" {
		return statusf(http.StatusNotImplemented, "memory: false: a pause keeps the programs here")
	}
	if info.Status == service.Paused {
		return statusf(http.StatusConflict, "sandbox %q is already paused", info.ID)
	}
	if err := q.config.Service.SetEnd(q.r.Context(), info.ID, time.Time{}); err != nil {
		return err
	}
	if err := q.config.Service.Pause(q.r.Context(), info.ID); err != nil {
		return errors.Join(err, q.config.Service.SetEnd(q.r.Context(), info.ID, info.Ends))
	}
	q.states.cut(info.ID)
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// connect answers how to reach a box, and resumes it if it is paused. The end of a box that runs
// becomes later, or stays.
func (q *request) connect() error {
	info, err := q.visible()
	if err != nil {
		return err
	}
	return q.reach(info)
}

// resume resumes a box that is paused.
func (q *request) resume() error {
	info, err := q.visible()
	if err != nil {
		return err
	}
	if info.Status != service.Paused {
		return statusf(http.StatusConflict, "sandbox %q is already running", info.ID)
	}
	return q.reach(info)
}

func (q *request) reach(info *service.Info) error {
	body := e2b.Timeout{Timeout: defaultTimeout}
	if _, err := q.body(&body); err != nil {
		return err
	}
	status := http.StatusOK
	switch info.Status {
	case service.Running:
		if err := q.extend(info, body.Timeout); err != nil {
			return err
		}
	case service.Paused:
		status = http.StatusCreated
		ends, err := endAfter(body.Timeout)
		if err != nil {
			return err
		}
		if err := q.config.Service.Resume(q.r.Context(), info.ID); err != nil {
			return err
		}
		if err := q.config.Service.SetEnd(q.r.Context(), info.ID, ends); err != nil {
			return err
		}
	default:
		return statusf(http.StatusConflict, "sandbox %q is %s: %s", info.ID, info.Status,
			info.Detail)
	}
	answerJSON(q.w, status, q.sandbox(info))
	return nil
}
