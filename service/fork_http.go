package service

import (
	"net/http"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/internal/api"
)

type forkBody struct {
	Count    int64             `spec:"count"`
	IDs      []string          `spec:"sandbox_ids"`
	Env      map[string]string `spec:"env"`
	Metadata map[string]string `spec:"metadata"`
	Ends     float64           `spec:"ends_in_seconds"`
	Accept   []string          `spec:"accept"`
}

// fork serves Fork. The owner of the copies is that of the box.
func (h *handler) fork(_ http.ResponseWriter, r *http.Request, _ *api.None,
	body *forkBody) (any, error) {
	env, err := api.Variables("env", body.Env)
	if err != nil {
		return nil, err
	}
	ends, err := endIn(body.Ends)
	if err != nil {
		return nil, err
	}
	accept, err := lossKinds(body.Accept)
	if err != nil {
		return nil, err
	}
	if body.Count == 0 {
		body.Count = max(int64(len(body.IDs)), 1)
	}
	if body.Count < 0 || body.Count > MaxForks {
		return nil, api.Invalid("count", "%d: write a number from 1 to %d", body.Count, MaxForks)
	}
	if _, err := h.visible(r); err != nil {
		return nil, err
	}
	infos, err := h.service.Fork(r.Context(), r.PathValue("id"), int(body.Count), ForkOptions{
		IDs: body.IDs, Env: env, Metadata: body.Metadata, Ends: ends, Accept: accept})
	if err != nil {
		return nil, err
	}
	copies := make([]*boxJSON, len(infos))
	for i, info := range infos {
		copies[i] = toJSON(info)
	}
	return copies, nil
}

// lossKinds returns the kinds of these names.
func lossKinds(names []string) (kinds sandbox.LossKind, err error) {
	for _, name := range names {
		kind := sandbox.LossKind(1)
		for kind.String() != name {
			if kind <<= 1; kind&sandbox.AnyLoss == 0 {
				known := strings.ReplaceAll(sandbox.AnyLoss.String(), "|", ", ")
				return 0, api.Invalid("accept", "%.100q: write some of: %s", name, known)
			}
		}
		kinds |= kind
	}
	return kinds, nil
}
