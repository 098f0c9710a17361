package pods

import (
	"context"
	"maps"
	"time"

	"github.com/sandshell/sandshell/service/place"
	corev1 "k8s.io/api/core/v1"
)

// watchPause is how long Watch waits if the API server does not answer.
const watchPause = time.Second

// Watch implements place.Place by a watch of the API server. After each break of that, it lists the
// pods and reports what has changed. A box is Starting until it has a note.
func (p *Place) Watch(ctx context.Context) (<-chan place.Event, error) {
	pods, err := p.list(ctx, p.selector())
	if err != nil {
		return nil, err
	}
	w := &watch{place: p, out: make(chan place.Event), known: map[string]place.Event{}}
	for i := range pods.Items {
		if e, ok := w.event(&pods.Items[i], false); ok {
			w.known[pods.Items[i].Name] = e
		}
	}
	go w.run(ctx, pods.ResourceVersion)
	return w.out, nil
}

// A watch is a call of Watch.
type watch struct {
	place *Place
	out   chan place.Event
	known map[string]place.Event // the last event sent, by the pod's name
}

// run sends changes since version until ctx ends.
func (w *watch) run(ctx context.Context, version string) {
	defer close(w.out)
	for {
		err := w.place.cluster.Changes(ctx, w.place.selector(), version,
			func() { w.sendSeen(ctx, place.Running) },
			func(pod *corev1.Pod, deleted bool) {
				if e, ok := w.event(pod, deleted); ok {
					w.send(ctx, pod.Name, e)
				}
			})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.place.log.Warn("the cluster's watch has ended; watching again", "error", err)
		}
		w.sendSeen(ctx, place.Unknown)
		pods, err := w.place.list(ctx, w.place.selector())
		for err != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(watchPause):
			}
			pods, err = w.place.list(ctx, w.place.selector())
		}
		version = pods.ResourceVersion
		w.sendChanges(ctx, pods.Items)
	}
}

// sendChanges sends an event for each pod that has changed since its last event.
func (w *watch) sendChanges(ctx context.Context, pods []corev1.Pod) {
	gone := maps.Clone(w.known)
	for i := range pods {
		delete(gone, pods[i].Name)
		if e, ok := w.event(&pods[i], false); ok {
			w.send(ctx, pods[i].Name, e)
		}
	}
	for pod, e := range gone {
		w.send(ctx, pod, place.Event{ID: e.ID, Status: place.Missing, Time: time.Now()})
	}
}

// send sends an event, unless it is the same as the pod's last one.
func (w *watch) send(ctx context.Context, pod string, e place.Event) {
	last, known := w.known[pod]
	switch {
	case e.Status == place.Missing && !known, e.ID == last.ID && e.Status == last.Status:
		return
	case e.Status == place.Missing:
		delete(w.known, pod)
	default:
		w.known[pod] = e
	}
	w.put(ctx, e)
}

// sendSeen sends an event of no box, which says whether changes are seen: place.Running or
// place.Unknown.
func (w *watch) sendSeen(ctx context.Context, status place.Status) {
	w.put(ctx, place.Event{Status: status, Time: time.Now()})
}

// put sends an event, unless ctx ends.
func (w *watch) put(ctx context.Context, e place.Event) {
	select {
	case w.out <- e:
	case <-ctx.Done():
	}
}

// event returns the event that reports a pod's state. A pod in a pool has none.
func (w *watch) event(pod *corev1.Pod, deleted bool) (place.Event, bool) {
	r := w.place.record(pod)
	if r == nil || r.ID == "" {
		return place.Event{}, false
	}
	e := place.Event{ID: r.ID, Status: r.Status, Detail: r.Detail, Time: time.Now()}
	switch {
	case deleted:
		e.Status, e.Detail = place.Missing, ""
	case r.Note == nil && r.Status == place.Running:
		e.Status = place.Starting
	}
	return e, true
}
