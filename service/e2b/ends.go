package e2b

import (
	"context"
	"errors"
	"time"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service"
)

// minWake is the least timeout, in seconds, of a sandbox that a request has resumed. E2B's is the
// same (its flag minimum-autoresume-timeout).
const minWake = 300

// wakeFor returns for how long a request resumes a sandbox.
func wakeFor(n *e2b.NewSandbox, timeout int64) time.Duration {
	if n.AutoResume == nil || !n.AutoResume.Enabled {
		return 0
	}
	return time.Duration(max(timeout, minWake)) * time.Second
}

// lifecycle describes what becomes of a sandbox at its end.
func lifecycle(info *service.Info) *e2b.Lifecycle {
	l := &e2b.Lifecycle{OnTimeout: "kill", AutoResume: info.WakeFor > 0}
	if info.PauseAtEnd {
		l.OnTimeout = "pause"
	}
	return l
}

// watchPause is how long watchEnds waits before it watches again.
const watchPause = time.Second

// watchEnds cuts the streams of boxes that are paused or removed, by whomever, until the service is
// closed. A stream of a paused box would be silent, and its client would wait.
func (h *handler) watchEnds() {
	for {
		events, err := h.config.Service.Watch(context.Background())
		if errors.Is(err, sandbox.ErrClosed) {
			return
		}
		if err != nil {
			h.config.Logger.Warn("e2b: watch the boxes", "error", err)
			time.Sleep(watchPause)
			continue
		}
		for e := range events {
			switch {
			case e.ID == "" && e.Status == service.Running: // what was missed
				for _, id := range h.states.ids() {
					h.cutIfStopped(id)
				}
			case e.ID != "" && (e.Status == service.Paused || e.Status == service.Missing):
				h.states.cut(e.ID) // the engine's list may not have it yet
			}
		}
	}
}

// lookLimit bounds the look at a box.
const lookLimit = 10 * time.Second

// cutIfStopped cuts the streams of a box unless it runs.
func (h *handler) cutIfStopped(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	info, err := h.config.Service.Get(ctx, id)
	if errors.Is(err, service.ErrNotFound) || err == nil && info.Status == service.Paused {
		h.states.cut(id)
		h.logs.drop(id)
	}
}
