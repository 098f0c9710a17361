package harness

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// A Status says how a task ended.
type Status string

// The statuses of a task.
const (
	// Pass means that the check passed.
	Pass Status = "pass"
	// Fail means that the check failed, or that the agent ended its box or left no room in it for
	// the check.
	Fail Status = "fail"
	// Timeout means that the agent had not returned when its time was over.
	Timeout Status = "timeout"
	// Stuck means that the agent or its time ended while its command asked a question, and that the
	// task had not been done.
	Stuck Status = "stuck"
	// OOM means that the kernel killed the box or a process in it because its memory was used up,
	// and that the task had not been done.
	OOM Status = "oom"
	// Lost means that the infrastructure failed: no box could be made, or the box was lost through
	// no fault of what ran in it. Only these tasks are tried again.
	Lost Status = "lost"
	// Error means that the agent returned an error of its own or panicked, that the task's image
	// cannot be built, or that its setup or solution failed.
	Error Status = "error"
)

// Statuses are all statuses, in the order in which they are shown.
var Statuses = []Status{Pass, Fail, Timeout, Stuck, OOM, Lost, Error}

// A verdict is a status with its reason, for people.
type verdict struct {
	Status
	reason string
}

func verdictOf(s Status, format string, args ...any) verdict {
	return verdict{s, fmt.Sprintf(format, args...)}
}

// notMade returns the verdict of an error of making a box.
func notMade(err error) verdict {
	var build *sshbox.BuildError
	var lost *sandbox.LostError
	switch {
	case errors.As(err, &build), errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err):
		// The Dockerfile fails, or the image or network does not exist.
		return verdict{Error, err.Error()}
	case errors.As(err, &lost) && lost.Cause == sandbox.LostMemory:
		return verdict{OOM, err.Error()}
	}
	return verdict{Lost, err.Error()}
}

// ofBox returns the verdict of an error that a lost box has caused. For any other error ok is
// false.
func ofBox(err error) (v verdict, ok bool) {
	var lost *sandbox.LostError
	switch {
	case errors.As(err, &lost) && lost.Cause == sandbox.LostMemory:
		return verdict{OOM, err.Error()}, true
	case errors.As(err, &lost) && lost.Cause == sandbox.LostEnded:
		return verdict{Fail, err.Error()}, true
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrCut):
		return verdict{Lost, err.Error()}, true
	}
	return verdict{}, false
}

// ofAgent returns the verdict of how an agent ended, with its ctx. If ok is false, the check
// decides.
func ofAgent(ctx context.Context, err error, waits bool) (v verdict, ok bool) {
	if v, ok := ofBox(err); ok {
		return v, true
	}
	switch {
	case errors.Is(err, sandbox.ErrQuestion):
		return verdict{Stuck, err.Error()}, true
	case waits && (err != nil || ctx.Err() != nil):
		return verdictOf(Stuck, "a command waited for an answer when the agent ended: %v",
			errors.Join(err, ctx.Err())), true
	case ctx.Err() != nil:
		return verdict{Timeout, context.Cause(ctx).Error()}, true
	case err != nil:
		return verdict{Error, err.Error()}, true
	}
	return verdict{}, false
}
