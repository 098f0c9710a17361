package remotebox

import (
	"context"
	"sync"
)

// maxMaking is how many boxes MakeAll makes side by side.
const maxMaking = 8

// MakeAll makes a box of each config. If one cannot be made, it discards the others, and returns
// the first error.
func MakeAll[C, B any](ctx context.Context, configs []C,
	newBox func(ctx context.Context, c C) (B, error), discard func(B)) ([]B, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	boxes, made := make([]B, len(configs)), make([]bool, len(configs))
	free := make(chan struct{}, maxMaking)
	var all sync.WaitGroup
	for i, c := range configs {
		free <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-free }()
			box, err := newBox(ctx, c)
			if err != nil {
				cancel(err) // the first error counts
			}
			boxes[i], made[i] = box, err == nil
		})
	}
	all.Wait()
	if ctx.Err() == nil {
		return boxes, nil
	}
	for i, box := range boxes {
		if made[i] {
			all.Go(func() { discard(box) })
		}
	}
	all.Wait()
	return nil, context.Cause(ctx)
}
