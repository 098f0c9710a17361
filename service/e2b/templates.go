package e2b

import (
	"net/http"
	"sync"

	"github.com/sandshell/sandshell/service"
)

// snapshots are the specs that clients have made, by snapshots of their boxes. They belong to their
// owners. All other specs are the service's, and templates for everybody.
type snapshots struct {
	mu   sync.Mutex
	byID map[string]made // by the IDs of specs
}

// A made says of what a snapshot was made.
type made struct{ owner, box string }

func (s *snapshots) add(id string, m made) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]made{}
	}
	s.byID[id] = m
}

func (s *snapshots) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// of returns of what a spec was made; ok is false if it is one of the service's.
func (s *snapshots) of(id string) (m made, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok = s.byID[id]
	return m, ok
}

// hidden reports whether a spec is a snapshot of another owner's.
func (q *request) hidden(spec *service.Spec) bool {
	m, ok := q.snapshots.of(spec.ID)
	return ok && m.owner != q.owner
}

// specList returns the specs that the owner may use.
func (q *request) specList() (all []*service.Spec, err error) {
	for page := ""; ; {
		specs, next, err := q.config.Service.Specs().Search(q.r.Context(), page, 0)
		if err != nil {
			return nil, err
		}
		for _, spec := range specs {
			if !q.hidden(spec) {
				all = append(all, spec)
			}
		}
		if next == "" {
			return all, nil
		}
		page = next
	}
}

// A template is a spec.
type template struct {
	TemplateID string   `json:"templateID"`
	BuildID    string   `json:"buildID"`
	CPUCount   int32    `json:"cpuCount"`
	MemoryMB   int32    `json:"memoryMB"`
	DiskSizeMB int32    `json:"diskSizeMB"`
	Public     bool     `json:"public"`
	Aliases    []string `json:"aliases"`
	Names      []string `json:"names"`
}

// templates lists the specs.
func (q *request) templates() error {
	specs, err := q.specList()
	if err != nil {
		return err
	}
	all := []template{}
	for _, spec := range specs {
		l := q.listed(&service.Info{Spec: spec.ID})
		_, own := q.snapshots.of(spec.ID)
		all = append(all, template{TemplateID: spec.ID, BuildID: spec.ID, Public: !own,
			CPUCount: l.CPUCount, MemoryMB: l.MemoryMB, DiskSizeMB: l.DiskSizeMB,
			Aliases: []string{spec.ID}, Names: []string{spec.ID}})
	}
	answerJSON(q.w, http.StatusOK, all)
	return nil
}

// alias answers whether there is a template of a name.
func (q *request) alias() error {
	spec, err := q.specOf(q.r.PathValue("template"))
	if err != nil {
		return err
	}
	_, own := q.snapshots.of(spec.ID)
	answerJSON(q.w, http.StatusOK, map[string]any{"templateID": spec.ID, "public": !own})
	return nil
}

// A snapshotInfo is a template that the owner has made of a box.
type snapshotInfo struct {
	ID    string   `json:"snapshotID"`
	Names []string `json:"names"`
}

// snapshotList lists the owner's snapshots, on one page.
func (q *request) snapshotList() error {
	specs, err := q.specList()
	if err != nil {
		return err
	}
	box, name := q.r.URL.Query().Get("sandboxID"), q.r.URL.Query().Get("name")
	all := []snapshotInfo{}
	for _, spec := range specs {
		if m, own := q.snapshots.of(spec.ID); own && (box == "" || box == m.box) &&
			(name == "" || name == spec.ID) {
			all = append(all, snapshotInfo{spec.ID, []string{spec.ID}})
		}
	}
	answerJSON(q.w, http.StatusOK, all)
	return nil
}

// deleteTemplate removes a snapshot of the owner's. Its image stays on the engine.
func (q *request) deleteTemplate() error {
	spec, err := q.specOf(q.r.PathValue("template"))
	if err != nil {
		return err
	}
	specs, ok := q.config.Service.Specs().(interface{ Remove(id string) error })
	if _, own := q.snapshots.of(spec.ID); !own || !ok {
		return statusf(http.StatusForbidden, "template %q is a spec of the service, not a "+
			"snapshot of yours: remove it from the service's specs", spec.ID)
	}
	if err := specs.Remove(spec.ID); err != nil {
		return err
	}
	q.snapshots.remove(spec.ID)
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// build refuses to make a template.
func (q *request) build() error {
	return statusf(http.StatusNotImplemented, "%s %s: templates are not built here: write a spec, "+
		"with the name of an image or the path of a Dockerfile, for the service", q.r.Method,
		q.r.URL.Path)
}
