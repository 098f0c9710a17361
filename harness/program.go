package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
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
// tools/mcp). The server's instructions are the task's instruction. What the program writes to
// standard error goes to the task's log. The program's environment has these variables too:
//
//   - HARNESS_TASK and HARNESS_INSTRUCTION: the task's ID and instruction
//   - HARNESS_SAMPLE: the number of the sample, from 1
//   - HARNESS_NUMBERS: a file to which the program may append scores and counts, each line a JSON
//     object such as {"scores": {"quality": 0.5}, "counts": {"tokens": 1200}}. They are those of
//     Trial.Score and Trial.Count: of a score the last value counts, and counts add up. A line has
//     at most 16 KiB. If one is wrong, the result is Error.
//
// When the program ends with exit status 0, the check decides. With any other status, the result is
// Error. When the task's time is over, the program gets SIGTERM, and is killed 5 s later. On
// systems without SIGTERM it is killed at once.
//
// If the program does not exist, Program returns an error.
func Program(args ...string) (Agent, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New("harness: Program: it has no name: give a program and its arguments")
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return nil, fmt.Errorf("harness: Program: %w", err)
	}
	return func(ctx context.Context, trial *Trial) error {
		box := trial.Box
		server, err := mcp.New(mcp.Config{Instructions: trial.Task.Instruction,
			Open: func(context.Context) (*tools.Set, error) {
				return toolsOf(box)
			}})
		if err != nil {
			return err
		}
		defer server.Close()
		numbers, err := newNumbersFile()
		if err != nil {
			return err
		}
		defer numbers.remove()
		err = serveProgram(ctx, server, args, trial, numbers)
		if wrong := numbers.giveTo(trial); err == nil {
			err = wrong
		} else if wrong != nil {
			fmt.Fprintln(trial.Log, "---", wrong)
		}
		if err != nil && ctx.Err() == nil { // the program may have failed because the box was lost
			if _, lost := box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}}); errors.Is(lost,
				sandbox.ErrLost) {
				err = errors.Join(lost, err)
			}
		}
		return err
	}, nil
}

// toolsOf returns the tools of a box. Closing them does not close the box.
func toolsOf(box sandbox.Sandbox) (*tools.Set, error) {
	return tools.New(tools.Box(box, tools.Config{}))
}

// serveProgram runs the program, and serves its requests until it ends.
func serveProgram(ctx context.Context, server *mcp.Server, args []string, trial *Trial,
	numbers *numbersFile) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HARNESS_TASK="+trial.Task.ID,
		"HARNESS_INSTRUCTION="+trial.Task.Instruction, "HARNESS_SAMPLE="+strconv.Itoa(trial.Sample),
		"HARNESS_NUMBERS="+numbers.path)
	cmd.Cancel = func() error { return terminate(cmd.Process) }
	cmd.WaitDelay = programGrace
	var stderr lastlines.Writer
	cmd.Stderr = io.MultiWriter(trial.Log, &stderr)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// Not StdoutPipe: Wait closes that pipe before it has been read to its end.
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
		err = fmt.Errorf("agent %s: %w: %s", args[0], err, &stderr)
	}
	return err
}
