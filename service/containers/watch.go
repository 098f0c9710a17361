package containers

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/service/place"
)

// Watch implements place.Place, by the engine's events. If the connection to the engine was cut,
// Watch connects again and compares the boxes with those that it knew.
func (p *Place) Watch(ctx context.Context) (<-chan place.Event, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	w := &watch{place: p, engine: e, out: make(chan place.Event)}
	if err := w.listen(ctx); err != nil {
		return nil, err
	}
	if w.known, err = w.statuses(ctx); err != nil {
		w.stop()
		return nil, err
	}
	go w.run(ctx)
	return w.out, nil
}

// A watch is one call of Watch.
type watch struct {
	place  *Place
	engine *docker.Engine
	out    chan place.Event
	known  map[string]place.Status // by ID
	events client.EventsResult
	stop   context.CancelFunc
}

// listen subscribes to the engine's events.
func (w *watch) listen(ctx context.Context) error {
	ctx, w.stop = context.WithCancel(ctx)
	w.events = w.engine.Events(ctx, client.EventsListOptions{
		Filters: client.Filters{}.Add("type", "container").Add("label",
			serviceLabel+"="+w.place.service),
	})
	select {
	case err := <-w.events.Err:
		w.stop()
		return fmt.Errorf("listen to the engine's events: %w", err)
	default:
		return nil
	}
}

// statuses asks the engine for the boxes of the service, and returns their statuses by ID.
func (w *watch) statuses(ctx context.Context) (map[string]place.Status, error) {
	records, err := w.place.List(ctx, "")
	if err != nil {
		return nil, err
	}
	statuses := map[string]place.Status{}
	for _, r := range records {
		if r.ID != "" {
			statuses[r.ID] = r.Status
		}
	}
	return statuses, nil
}

// run sends events until ctx ends.
func (w *watch) run(ctx context.Context) {
	defer close(w.out)
	if !w.send(ctx, place.Event{Status: place.Running, Time: time.Now()}) {
		w.stop()
		return
	}
	for {
		select {
		case m := <-w.events.Messages:
			if event, ok := w.event(m); ok && !w.send(ctx, event) {
				w.stop()
				return
			}
		case err := <-w.events.Err:
			w.stop()
			if ctx.Err() != nil {
				return
			}
			w.place.log.Warn("the engine's events have ended; listening again", "error", err)
			if !w.send(ctx, place.Event{Status: place.Unknown, Time: time.Now()}) ||
				!w.reconnect(ctx) {
				return
			}
		}
	}
}

// reconnect listens again, and sends an event for each box that has changed in between. It reports
// false if ctx has ended.
func (w *watch) reconnect(ctx context.Context) bool {
	for {
		err := w.listen(ctx)
		if err == nil {
			var latest map[string]place.Status
			if latest, err = w.statuses(ctx); err == nil {
				return w.sendChanges(ctx, latest) &&
					w.send(ctx, place.Event{Status: place.Running, Time: time.Now()})
			}
			w.stop()
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}

// sendChanges sends an event for each box whose latest status is not the known one.
func (w *watch) sendChanges(ctx context.Context, latest map[string]place.Status) bool {
	for id := range maps.Clone(w.known) {
		if _, ok := latest[id]; !ok && !w.send(ctx,
			place.Event{ID: id, Status: place.Missing, Time: time.Now()}) {
			return false
		}
	}
	for id, status := range latest {
		if w.known[id] != status && !w.send(ctx, place.Event{ID: id, Status: status,
			Time: time.Now()}) {
			return false
		}
	}
	return true
}

// send sends an event. It reports false if ctx has ended.
func (w *watch) send(ctx context.Context, e place.Event) bool {
	switch {
	case e.ID == "":
	case e.Status == place.Missing:
		delete(w.known, e.ID)
	default:
		w.known[e.ID] = e.Status
	}
	select {
	case w.out <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// event returns the Event of one of the engine's. ok is false if there is none.
func (w *watch) event(m events.Message) (e place.Event, ok bool) {
	attributes := m.Actor.Attributes
	id, ok := w.place.idOf(attributes["name"])
	if !ok {
		return place.Event{}, false
	}
	e = place.Event{ID: id, Time: time.Unix(0, m.TimeNano)}
	switch m.Action {
	case events.ActionCreate:
		e.Status = place.Starting
	case events.ActionStart, events.ActionUnPause, events.ActionRename:
		e.Status = place.Running
	case events.ActionPause:
		e.Status = place.Paused
	case events.ActionDie:
		e.Status = place.Paused
		e.Detail = "its programs have ended with exit status " + attributes["exitCode"]
	case events.ActionOOM:
		e.Status = w.known[id]
		e.Detail = "out of memory: the kernel has killed one of its programs"
	case events.ActionDestroy:
		e.Status = place.Missing
	default:
		return place.Event{}, false
	}
	return e, true
}
