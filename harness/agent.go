package harness

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sandshell/sandshell/sandbox"
)

// An Agent does a task in a box, as well as it can. It returns when it is done, or when ctx ends,
// which is when the task's time is over; what it has opened in the box ends with the box. Errors of
// the box it returns as they are, wrapped or not: they tell what has become of the task. Any other
// error, or a panic, is the agent's own: Error. An Agent may be called from several goroutines,
// each with another box.
//
// An agent that does not return when ctx ends finds its box closed, and is waited for: nothing can
// end a goroutine.
type Agent func(ctx context.Context, box sandbox.Sandbox, task Task) error

// Nop does nothing: no task should pass.
func Nop(context.Context, sandbox.Sandbox, Task) error { return nil }

// ErrNoSolution is what Oracle says of a task that has no Solution.
var ErrNoSolution = errors.New("the task has no reference solution")

// Oracle does the reference solution: every task should pass.
func Oracle(ctx context.Context, box sandbox.Sandbox, task Task) error {
	if task.Solution.Command == "" {
		return ErrNoSolution
	}
	p, err := openWorkspace(ctx, box, &task)
	if err != nil {
		return err
	}
	e, err := p.script(ctx, task.Solution, Log(ctx))
	if err == nil && len(task.Check.Like) == 0 { // Check.Like goes by what is left alone
		err = e.err()
	}
	if err != nil {
		err = fmt.Errorf("the reference solution: %w", err)
	}
	return err
}

// Scripted types commands into the main session, one after the other, whatever their exit status
// is. Nobody answers their questions: a command that asks ends with sandbox.ErrQuestion, and the
// agent with it. If each is not nil, it gets each Result, and may end the script by an error.
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

// Log is the log of the task that ctx is of: what an agent has to say goes there, and into the
// report. It takes writes of several goroutines.
func Log(ctx context.Context) io.Writer {
	if w, ok := ctx.Value(logKey{}).(io.Writer); ok {
		return w
	}
	return io.Discard
}
