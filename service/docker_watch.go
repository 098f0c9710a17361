package service

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/service/place"
)

// Watch implements Place, by the engine's events. Whenever the connection to the engine was cut, it
// looks what has changed meanwhile.
func (p *dockerPlace) Watch(ctx context.Context) (<-chan place.Event, error) {
	e, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	w := &watch{place: p, engine: e, out: make(chan place.Event)}
	if err := w.listen(ctx); err != nil {
		return nil, err
	}
	if w.known, err = w.look(ctx); err != nil {
		w.stop()
		return nil, err
	}
	go w.run(ctx)
	return w.out, nil
}

// A watch is a call of Watch.
type watch struct {
	place  *dockerPlace
	engine *docker.Engine
	out    chan place.Event
	known  map[string]Status // by ID
	events client.EventsResult
	stop   context.CancelFunc
}

// listen starts to listen to the engine.
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

// look asks for the boxes that there are.
func (w *watch) look(ctx context.Context) (map[string]Status, error) {
	records, err := w.place.List(ctx, "")
	if err != nil {
		return nil, err
	}
	known := map[string]Status{}
	for _, r := range records {
		if r.ID != "" {
			known[r.ID] = r.Status
		}
	}
	return known, nil
}

func (w *watch) run(ctx context.Context) {
	defer close(w.out)
	for {
		select {
		case m := <-w.events.Messages:
			if event, ok := w.event(m); ok && !w.tell(ctx, event) {
				w.stop()
				return
			}
		case err := <-w.events.Err:
			w.stop()
			if ctx.Err() != nil || !w.again(ctx, err) {
				return
			}
		}
	}
}

// again listens anew, and tells what has changed meanwhile. It reports false when ctx has ended.
func (w *watch) again(ctx context.Context, err error) bool {
	w.place.log.Warn("the engine's events have ended; listening again", "error", err)
	for {
		err := w.listen(ctx)
		var now map[string]Status
		if err == nil {
			if now, err = w.look(ctx); err != nil {
				w.stop()
			}
		}
		if err == nil {
			return w.difference(ctx, now)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}

func (w *watch) difference(ctx context.Context, now map[string]Status) bool {
	for id := range maps.Clone(w.known) {
		if _, there := now[id]; !there && !w.tell(ctx,
			place.Event{ID: id, Status: Missing, Time: time.Now()}) {
			return false
		}
	}
	for id, status := range now {
		if w.known[id] != status && !w.tell(ctx, place.Event{ID: id, Status: status,
			Time: time.Now()}) {
			return false
		}
	}
	return true
}

// tell sends an event.
func (w *watch) tell(ctx context.Context, e place.Event) bool {
	if e.Status == Missing {
		delete(w.known, e.ID)
	} else {
		w.known[e.ID] = e.Status
	}
	select {
	case w.out <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// event makes an Event of the engine's.
func (w *watch) event(m events.Message) (place.Event, bool) {
	of := m.Actor.Attributes
	id, named := strings.CutPrefix(of["name"], w.place.prefix())
	if !named || !validID.MatchString(id) {
		return place.Event{}, false
	}
	e := place.Event{ID: id, Time: time.Unix(0, m.TimeNano)}
	switch m.Action {
	case events.ActionCreate:
		e.Status = Starting
	case events.ActionStart, events.ActionUnPause, events.ActionRename:
		e.Status = Running
	case events.ActionPause:
		e.Status = Paused
	case events.ActionDie:
		e.Status, e.Detail = Paused, "its programs have ended with exit status "+of["exitCode"]
	case events.ActionOOM:
		e.Status, e.Detail = w.known[id], "out of memory: the kernel has killed one of its programs"
	case events.ActionDestroy:
		e.Status = Missing
	default:
		return place.Event{}, false
	}
	return e, true
}
