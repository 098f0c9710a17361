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

// programGrace is how long a program may take to end after its SIGTERM, and how long its standard
// error may stay open after the program.
const programGrace = 5 * time.Second

// Program returns an Agent that starts a program on this machine for each task, in this process's
// directory and environment. The program is an MCP client on its standard input and output. The
// server at the other end offers the box as tools: a shell, files and jobs (see packages tools and
// tools/mcp). The variables HARNESS_TASK and HARNESS_INSTRUCTION hold the task's ID and
// instruction; the server's own instructions are the instruction, too. What the program writes to
// standard error goes to the task's log.
//
// When the program ends with exit status 0, the check decides. With any other status, the result is
// Error. When the task's time is over, the program gets SIGTERM, and is killed 5 s later. On
// systems without SIGTERM it is killed at once.
//
// If the program does not exist, Run ends with an error, and no task gets a result.
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
		if err != nil && ctx.Err() == nil { // the program may have failed because the box was lost
			if _, lost := box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}}); errors.Is(lost,
				sandbox.ErrLost) {
				err = errors.Join(lost, err)
			}
		}
		return err
	}
}

// FindProgram returns an error if the program of a Program does not exist. Run finds that out only
// when the first task's box has been made, so call FindProgram before.
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

// toolsOf returns the tools of a box. Closing them does not close the box.
func toolsOf(box sandbox.Sandbox) (*tools.Set, error) {
	return tools.New(tools.Box(box, tools.Config{}))
}

// serveProgram runs the program, and serves its requests until it ends.
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
	// Not StdoutPipe: Wait closes that, even if it has not been read to its end.
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
		requests.Close() // so that a program that goes on writing does not block
		stdin.Close()
		served <- err
	}()
	err = cmd.Wait()
	stdout.Close()
	stop() // nothing will read the answer to a call that is under way
	<-served
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("agent %s: %w: %s", args[0], err, &said)
	}
	return err
}
