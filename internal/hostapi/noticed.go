package hostapi

import "context"

type unnoticed struct{}

// Unnoticed returns a context whose Runs, copies and connections do not count as Activity of a
// shellbox.Box. It is for programs that watch the box.
func Unnoticed(ctx context.Context) context.Context {
	return context.WithValue(ctx, unnoticed{}, true)
}

// IsNoticed reports whether what is done with ctx counts as Activity.
func IsNoticed(ctx context.Context) bool { return ctx.Value(unnoticed{}) == nil }
