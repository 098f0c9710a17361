package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/sandshell/sandshell/tools/mcp"
)

// programGrace is how long a program may take to end after its SIGTERM, and its standard error to
// end after the program.
const programGrace = 5 * time.Second

// Program is an agent that any program can be: it is started on this machine for each task, in this
// process's directory and environment, and is an MCP client on its standard input and output. The
// server at the other end gives it the box: a shell, files and jobs (see packages tools and
// tools/mcp). The task's ID and instruction are in the variables HARNESS_TASK and
// HARNESS_INSTRUCTION; the instruction is also what the server gives as its own instructions. What
// the program writes to standard error goes to the task's log.
//
// The program has done the task when it ends with exit status 0; another status is its own error.
// When the task's time is over it gets SIGTERM, and is killed 5 s later. (Where there is no
// SIGTERM, it is killed.)
//
// If there is no such program, Run ends with that as its error: no task is at fault.
func Program(args ...string) Agent {
	return func(ctx context.Context, box sandbox.Sandbox, task Task) error {
		if err := FindProgram(args...); err != nil {
			return err
		}
		server, err := mcp.New(mcp.Config{Instructions: task.Instruction,
			Open: func(context.Context) (*tools.Set, error) {
				return toolsOf(box)
			}})
		if err != nil {
			return err
		}
		defer server.Close()
		err = serveProgram(ctx, server, args, task)
		if err != nil && ctx.Err() == nil { // of a box that was lost, the program has only heard
			if _, lost := box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}}); errors.Is(lost,
				sandbox.ErrLost) {
				err = errors.Join(lost, err)
			}
		}
		return err
	}
}

// FindProgram says why there would be no such Program; nil if there is one. Call it before Run,
// which finds out only when the first task's box is made.
func FindProgram(args ...string) error {
	if len(args) == 0 || args[0] == "" {
		return &noProgramError{errors.New("it has no name")}
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return &noProgramError{err}
	}
	return nil
}

// A noProgramError ends a Run: no task could be done.
type noProgramError struct{ err error }

func (e *noProgramError) Error() string { return "the agent's program: " + e.err.Error() }
func (e *noProgramError) Unwrap() error { return e.err }

// toolsOf are the tools of a box, which outlives them.
func toolsOf(box sandbox.Sandbox) (*tools.Set, error) {
	return tools.New(tools.Box(box, tools.Config{}))
}

// serveProgram runs the program, and serves it until it ends.
func serveProgram(ctx context.Context, server *mcp.Server, args []string, task Task) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HARNESS_TASK="+task.ID, "HARNESS_INSTRUCTION="+task.Instruction)
	cmd.Cancel = func() error { return terminate(cmd.Process) }
	cmd.WaitDelay = programGrace
	var said lastlines.Writer
	cmd.Stderr = io.MultiWriter(Log(ctx), &said)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// A pipe of ours: Wait closes one of exec's, also when not all has been read.
	requests, stdout := io.Pipe()
	cmd.Stdout = stdout
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		err := server.Serve(serving, &mcp.Lines{Reader: requests, Writer: stdin})
		requests.Close() // a program that goes on writing is not to block
		stdin.Close()
		served <- err
	}()
	err = cmd.Wait()
	stdout.Close()
	stop() // a call that is under way has nobody to hear of it
	<-served
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("agent %s: %w: %s", args[0], err, &said)
	}
	return err
}
