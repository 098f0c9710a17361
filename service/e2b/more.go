package e2b

import (
	"net/http"
	"time"

	"github.com/sandshell/sandshell/service"
)

// A metric is what a box uses at one moment.
type metric struct {
	Timestamp     time.Time `json:"timestamp"`
	TimestampUnix int64     `json:"timestampUnix"`
	CPUCount      int32     `json:"cpuCount"`
	CPUUsedPct    float64   `json:"cpuUsedPct"`
	MemUsed       int64     `json:"memUsed"`
	MemTotal      int64     `json:"memTotal"`
	MemCache      int64     `json:"memCache"`
	DiskUsed      int64     `json:"diskUsed"`
	DiskTotal     int64     `json:"diskTotal"`
}

// metrics answers with what a box uses now: one item, because nobody keeps what was before. The
// processor's use is the mean since the box was started.
func (q *request) metrics() error {
	info, err := q.visible()
	if err != nil {
		return err
	}
	use, err := q.config.Service.Usage(q.r.Context(), info.ID)
	if err != nil {
		return err
	}
	now, l := time.Now(), q.listed(info)
	m := metric{Timestamp: now.UTC(), TimestampUnix: now.Unix(), CPUCount: l.CPUCount,
		MemUsed: use.Memory, MemTotal: use.MemoryLimit, DiskUsed: use.Disk,
		DiskTotal: int64(l.DiskSizeMB) << 20}
	if life := now.Sub(info.Created); life > 0 {
		m.CPUUsedPct = 100 * float64(use.CPU) / float64(life)
	}
	answerJSON(q.w, http.StatusOK, []metric{m})
	return nil
}

// snapshot makes a template of a box's files.
func (q *request) snapshot() error {
	rest, err := q.body(&struct{}{})
	if err != nil {
		return err
	}
	if name := rest["name"]; name != nil && !isUnset(name) {
		return statusf(http.StatusNotImplemented, "name: a snapshot's name is its image's: leave "+
			"it out")
	}
	info, err := q.visible()
	if err != nil {
		return err
	}
	specs, ok := q.config.Service.Specs().(interface{ Set(*service.Spec) error })
	if !ok {
		return statusf(http.StatusNotImplemented, "the service's specs are files: a snapshot's "+
			"cannot be added")
	}
	spec, err := q.config.Service.Snapshot(q.r.Context(), info.ID)
	if err != nil {
		return err
	}
	q.snapshots.add(spec.ID, made{info.Owner, info.ID}) // before others see it
	if err := specs.Set(spec); err != nil {
		q.snapshots.remove(spec.ID)
		return err
	}
	answerJSON(q.w, http.StatusCreated, snapshotInfo{spec.ID, []string{spec.ID}})
	return nil
}

// signed returns the id of the box whose token has signed a request.
func (h *handler) signed(r *http.Request) (string, error) {
	for q := (service.Query{}); ; {
		page, err := h.config.Service.Search(r.Context(), q)
		if err != nil {
			return "", err
		}
		found := ""
		for _, info := range page.Items { // all of them, so that the time tells nothing
			if same(r.URL.Query().Get("signature"), signature(r, h.token(info.ID))) {
				found = info.ID
			}
		}
		if found != "" || page.Next == "" {
			return found, nil
		}
		q.Page = page.Next
	}
}
