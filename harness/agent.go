package harness

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sandshell/sandshell/sandbox"
)

// An Agent does a task in a box. It returns when it is done, or when ctx ends because the task's
// time is over. It need not close what it opens in the box.
//
// An Agent returns errors of the box as they are, or wrapped: they decide the result. If it returns
// any other error, or panics, the result is Error. Run calls an Agent concurrently, each time with
// another box.
//
// If an Agent does not return when ctx ends, Run closes its box and waits for it, because nothing
// can end a goroutine.
type Agent func(ctx context.Context, box sandbox.Sandbox, task Task) error

// Nop is an Agent that does nothing. No task should pass with it.
func Nop(context.Context, sandbox.Sandbox, Task) error { return nil }

// ErrNoSolution is what Oracle returns for a task that has no Solution.
var ErrNoSolution = errors.New("the task has no reference solution")

// Oracle is an Agent that runs the reference solution. Every task should pass with it.
func Oracle(ctx context.Context, box sandbox.Sandbox, task Task) error {
	if task.Solution.Command == "" {
		return ErrNoSolution
	}
	p, err := openWorkspace(ctx, box, &task)
	if err != nil {
		return err
	}
	e, err := p.script(ctx, task.Solution, Log(ctx))
	if err == nil && len(task.Check.Like) == 0 { // Check.Like ignores the exit status
		err = e.err()
	}
	if err != nil {
		err = fmt.Errorf("the reference solution: %w", err)
	}
	return err
}

// Scripted returns an Agent that runs commands in the main session, one after the other, whatever
// their exit status. If a command asks a question, the Agent ends with sandbox.ErrQuestion. If each
// is not nil, it is called with each Result; an error that it returns ends the Agent.
func Scripted(commands []string, each func(command string, r *sandbox.Result) error) Agent {
	return func(ctx context.Context, box sandbox.Sandbox, _ Task) error {
		for _, command := range commands {
			io.WriteString(Log(ctx), "$ "+command+"\n")
			r, err := box.Execute(ctx, command, sandbox.AtQuestion(sandbox.Fail))
			if r != nil {
				io.WriteString(Log(ctx), r.Text())
			}
			if err != nil {
				return err
			}
			if each != nil {
				if err := each(command, r); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

type logKey struct{}

// Log returns the log of the task of an Agent's ctx. What an agent writes there is also in the
// report. The writer may be used concurrently. For any other ctx, Log returns io.Discard.
func Log(ctx context.Context) io.Writer {
	if w, ok := ctx.Value(logKey{}).(io.Writer); ok {
		return w
	}
	return io.Discard
}
