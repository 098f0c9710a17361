package harness

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// A Status is what has become of a task.
type Status string

const (
	Pass Status = "pass" // the check has passed
	// the check has failed, or the agent has ended its box or left no room in it for the check
	Fail    Status = "fail"
	Timeout Status = "timeout" // the agent had not returned when its time was over
	// the agent ended, or its time did, at a question of its command that nobody answered; and what
	// it had done was not enough
	Stuck Status = "stuck"
	// the kernel killed the box, or a process in it, because its memory was used up; and what had
	// been done was not enough
	OOM Status = "oom"
	// the infrastructure failed: no box could be made, or it was lost through no fault of what ran
	// in it. The one that is tried again
	Lost Status = "lost"
	// the agent's own error or panic; or the task's: its image cannot be built, or its setup or
	// solution fails
	Error Status = "error"
)

// Statuses are all of them, in the order in which they are shown.
var Statuses = []Status{Pass, Fail, Timeout, Stuck, OOM, Lost, Error}

// A verdict is a status with its reason, for people.
type verdict struct {
	Status
	reason string
}

func verdictOf(s Status, format string, args ...any) verdict {
	return verdict{s, fmt.Sprintf(format, args...)}
}

// notMade judges an error of making a box.
func notMade(err error) verdict {
	var build *sshbox.BuildError
	var lost *sandbox.LostError
	switch {
	case errors.As(err, &build), errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err):
		// a Dockerfile, an image or a network that there is not
		return verdict{Error, err.Error()}
	case errors.As(err, &lost) && lost.Cause == sandbox.LostMemory:
		return verdict{OOM, err.Error()}
	}
	return verdict{Lost, err.Error()}
}

// ofBox judges an error that is the box's, not its user's; ok is false if it is neither.
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

// ofAgent judges how an agent has ended; ok is false if the check is to decide. ctx is what the
// agent had.
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
