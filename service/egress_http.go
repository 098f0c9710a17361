package service

import (
	"net/http"
	"time"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/service/internal/api"
)

type (
	egressJSON struct {
		Rules   []string      `json:"rules"`
		Served  bool          `json:"served_here"`
		Refused []refusalJSON `json:"refused"`
		Count   int           `json:"refused_count"`
	}
	refusalJSON struct {
		Time    time.Time `json:"at"`
		Host    string    `json:"host"`
		Port    int       `json:"port"`
		Method  *string   `json:"method"`
		Program *string   `json:"program"`
		Session *string   `json:"session_id"`
		Why     string    `json:"why"`
	}
)

// egress answers what a box may reach, and what it was refused.
func (h *handler) egress(_ http.ResponseWriter, r *http.Request, _, _ *api.None) (any, error) {
	info, err := h.visible(r)
	if err != nil {
		return nil, err
	}
	e, err := h.service.Egress(r.Context(), info.ID)
	if err != nil {
		return nil, err
	}
	answer := egressJSON{Rules: e.Rules, Served: e.Served, Refused: []refusalJSON{},
		Count: e.RefusedCount}
	for _, event := range e.Refused {
		answer.Refused = append(answer.Refused, toRefusal(event))
	}
	return answer, nil
}

// maxShown bounds a text of the box in an answer, in bytes.
const maxShown = 1 << 10

// toRefusal returns an Event with the box's texts escaped and cut.
func toRefusal(e egress.Event) refusalJSON {
	shown := func(text string) string {
		return printable.Line(text[:min(len(text), maxShown)])
	}
	return refusalJSON{Time: e.Time.UTC(), Host: shown(e.Host), Port: e.Port,
		Method: nullable(shown(e.Method)), Program: nullable(shown(e.Program)),
		Session: nullable(shown(e.Session)), Why: shown(e.Denied)}
}

// clientRules returns the rules that a client has sent. An empty list is none.
func (h *handler) clientRules(rules []string) ([]string, error) {
	if len(rules) > 0 && !h.config.Egress {
		return nil, api.Invalid("egress", "clients may not choose it here: leave it out, and the "+
			"spec says what the box may reach")
	}
	return rules, nil
}
