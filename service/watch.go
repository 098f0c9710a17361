package service

import (
	"context"

	"github.com/sandshell/sandshell/service/place"
)

// Watch returns a channel that gets an event when a box of the service comes, goes or changes, as
// the engine sees it. Health checks cause no events. A slow reader holds up only itself. An event
// without an ID says whether changes are seen: place.Running from then on, place.Unknown while the
// engine does not answer. The channel is closed when ctx ends or the service is closed.
func (s *Service) Watch(ctx context.Context) (events <-chan place.Event, err error) {
	_, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	watching, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	context.AfterFunc(ctx, func() { stop(); cancel() })
	return s.place.Watch(watching)
}
