package ctxerr

import (
	"context"
	"errors"
	"testing"
	"time"
)

var (
	errMine, errOurs = errors.New("mine"), errors.New("ours")
	gone, late       = context.Canceled, context.DeadlineExceeded
)

func TestOf(t *testing.T) {
	canceled := func(ctx context.Context, cause error) context.Context {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(cause)
		return ctx
	}
	expired := func(ctx context.Context, cause error) context.Context {
		ctx, cancel := context.WithTimeoutCause(ctx, -1, cause)
		cancel()
		return ctx
	}
	closed := func(ctx context.Context, why error) context.Context {
		ctx, cancel := WithCancel(ctx)
		cancel(why)
		return ctx
	}
	limited := func(ctx context.Context) context.Context {
		ctx, cancel := WithLimit(ctx, -time.Second, errOurs)
		cancel()
		return ctx
	}
	deadline := errors.Join(errMine, late)
	for _, c := range []struct {
		name string
		ctx  context.Context
		is   []error
		text string
	}{
		{"going on", t.Context(), nil, ""},
		{"canceled", canceled(t.Context(), nil), []error{gone}, "context canceled"},
		{"canceled with a cause", canceled(t.Context(), errMine), []error{gone, errMine},
			"context canceled: mine"},
		{"expired with a cause", expired(t.Context(), errMine), []error{late, errMine},
			"context deadline exceeded: mine"},
		{"a cause that says it", expired(t.Context(), deadline), []error{late, errMine},
			"mine\ncontext deadline exceeded"},
		{"closed by us", closed(t.Context(), errOurs), []error{errOurs}, "ours"},
		{"ended by us, no reason", closed(t.Context(), nil), []error{gone}, "context canceled"},
		{"a limit of ours", limited(t.Context()), []error{errOurs}, "ours"},
		{"the caller's before ours", limited(closed(canceled(t.Context(), errMine), errOurs)),
			[]error{gone, errMine}, "context canceled: mine"},
		{"ours before the caller's", canceled(closed(t.Context(), errOurs), errMine),
			[]error{errOurs}, "ours"},
	} {
		err := Of(c.ctx)
		if c.text == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || err.Error() != c.text {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, e := range []error{gone, late, errMine, errOurs} {
			want := false
			for _, is := range c.is {
				want = want || is == e
			}
			if errors.Is(err, e) != want {
				t.Errorf("%s: Is(%v) = %v", c.name, e, !want)
			}
		}
	}
}
