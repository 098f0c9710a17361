package remotebox

import (
	"context"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Connected is a shellbox.Host with a connection to its boxd.
type Connected interface {
	shellbox.Host
	// Lost returns why the box is gone; nil if it is there, or if that is not known when ctx ends.
	Lost(ctx context.Context) error
	// Abandon makes Close leave everything running.
	Abandon()
}

// attachLimit bounds the connecting, and the question why it has failed.
const attachLimit = 10 * time.Second

// A Way is how a program attaches to a running box.
type Way bool

const (
	Alone  Way = false // it takes the box over: the previous owners lose it
	Beside Way = true  // it joins the other owners
)

// Attach attaches to a running box: connect connects to its boxd as an owner. If Attach fails, it
// leaves the box running, because no caller has asked for its end. kind is the sandbox's String.
func Attach[H Connected](ctx context.Context, kind string, o shellbox.Options, way Way,
	connect func(ctx context.Context) (H, error)) (*shellbox.Box, H, error) {
	var none H
	connecting, cancel := ctxerr.WithLimit(ctx, attachLimit, &sandbox.LostError{Box: kind,
		Reason: fmt.Sprintf("no answer within %v", attachLimit), Cause: sandbox.LostConnection})
	defer cancel()
	h, err := connect(connecting)
	if err != nil {
		// A client of an engine returns context.DeadlineExceeded, whatever the cause.
		if connecting.Err() != nil {
			err = ctxerr.Of(connecting)
		}
		return nil, none, err
	}
	attach := shellbox.Attach
	if way == Beside {
		attach = shellbox.Join
	}
	box, err := attach(ctx, h, o)
	if err == nil {
		return box, h, nil
	}
	if ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, attachLimit)
		defer cancel()
		if lost := h.Lost(asking); lost != nil {
			err = lost
		}
	}
	h.Abandon()
	h.Close()
	return nil, none, err
}
