package harness

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sandshell/sandshell/sandbox"
)

// An Agent does the task of a Trial in its box. It returns when it is done, or when ctx ends
// because the task's time is over. It need not close what it opens in the box.
//
// An Agent returns errors of the box as they are, or wrapped, because they decide the result. If it
// returns any other error, or panics, the result is Error. Run calls an Agent concurrently, each
// time with another box.
//
// If an Agent does not return when ctx ends, Run closes its box and waits for it, because nothing
// can end a goroutine.
type Agent func(ctx context.Context, trial *Trial) error

// Nop is an Agent that does nothing. No task should pass with it.
func Nop(context.Context, *Trial) error { return nil }

// ErrNoSolution is what Oracle returns for a task that has no Solution.
var ErrNoSolution = errors.New("the task has no reference solution")

// Oracle is an Agent that runs the reference solution. Every task should pass with it.
func Oracle(ctx context.Context, trial *Trial) error {
	task := &trial.Task
	if task.Solution.Command == "" {
		return &brokenError{ErrNoSolution}
	}
	p, err := openWorkspace(ctx, trial.Box, task)
	if err != nil {
		return err
	}
	e, err := p.script(ctx, task.Solution, trial.Log)
	if err != nil {
		return fmt.Errorf("the reference solution: %w", err)
	}
	if err := e.err(); err != nil && len(task.Check.Like) == 0 { // which ignores the exit status
		return &brokenError{fmt.Errorf("the reference solution: %w", err)}
	}
	return nil
}

// Scripted returns an Agent that runs commands in the main session, one after the other, whatever
// their exit status. If a command asks a question, the Agent ends with sandbox.ErrQuestion. If each
// is not nil, the Agent calls it with each Result, and ends with the first error that it returns.
func Scripted(commands []string, each func(command string, r *sandbox.Result) error) Agent {
	return func(ctx context.Context, trial *Trial) error {
		for _, command := range commands {
			io.WriteString(trial.Log, "$ "+command+"\n")
			r, err := trial.Box.Execute(ctx, command, sandbox.AtQuestion(sandbox.Fail))
			if r != nil {
				io.WriteString(trial.Log, r.Text())
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
