package harness

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/sandshell/sandshell/sandbox"
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
	// Error means that the agent returned an error of its own or panicked.
	Error Status = "error"
	// Broken means that the task itself is at fault: its image cannot be built, its image, user or
	// network does not exist, or its setup or reference solution failed. The result says nothing
	// about the agent.
	Broken Status = "broken"
)

// Statuses are all statuses, in the order in which they are shown.
var Statuses = []Status{Pass, Fail, Timeout, Stuck, OOM, Lost, Error, Broken}

// A brokenError is an Oracle's error that is the task's fault.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// A verdict is a status with its reason, for people.
type verdict struct {
	Status
	reason string
}

func verdictOf(s Status, format string, args ...any) verdict {
	return verdict{s, fmt.Sprintf(format, args...)}
}

// verdictOfCreation returns the verdict of an error of making a box.
func verdictOfCreation(err error) verdict {
	var spec *sandbox.SpecError
	var lost *sandbox.LostError
	switch {
	case errors.As(err, &spec), errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err):
		// The Dockerfile fails, or the image, network or user does not exist.
		return verdict{Broken, err.Error()}
	case errors.As(err, &lost) && lost.Cause == sandbox.LostMemory:
		return verdict{OOM, err.Error()}
	}
	return verdict{Lost, err.Error()}
}

// verdictOfBox returns the verdict of an error that a lost box has caused. ok is false if the error
// has another cause.
func verdictOfBox(err error) (v verdict, ok bool) {
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

// verdictOfAgent returns the verdict of an agent that has returned err. ctx is the agent's. waits
// says that a command was waiting for an answer. If ok is false, the check decides.
func verdictOfAgent(ctx context.Context, err error, waits bool) (v verdict, ok bool) {
	if v, ok := verdictOfBox(err); ok {
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
	case errors.As(err, new(*brokenError)):
		return verdict{Broken, err.Error()}, true
	case err != nil:
		return verdict{Error, err.Error()}, true
	}
	return verdict{}, false
}
