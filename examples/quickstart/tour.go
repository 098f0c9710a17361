package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A tour works in a box, and checks each result.
type tour struct {
	*transcript
	box     sandbox.Sandbox
	local   bool
	leftOut []string
}

// run takes the tour. If a chapter needs a program that this machine does not have, run leaves the
// chapter out.
func (t *tour) run(ctx context.Context) error {
	began := time.Now()
	for _, chapter := range []struct {
		title string
		needs string
		steps func(context.Context) error
	}{
		{"The shell remembers", "sh", t.keepState},
		{"A project is built, tested and fetched", "make", t.buildProject},
		{"A program that asks is answered", "rm", t.answerQuestion},
		{"A server in the background is reached", "python3", t.runServer},
		{"A runaway loop is stopped", "sh", t.stopLoop},
	} {
		t.title(chapter.title)
		// Run is for programs that need neither a shell nor a terminal. It has separate stdout and
		// stderr, and does not touch the session.
		code, err := t.box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", `command -v "$1"`, "sh",
			chapter.needs}})
		switch {
		case err == nil && code == 0:
			err = chapter.steps(ctx)
		case err == nil && t.local:
			t.leaveOut("there is no %s on this machine", chapter.needs)
		case err == nil:
			err = fmt.Errorf("the image has no %s: give another -image", chapter.needs)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", chapter.title, err)
		}
	}
	t.title("Done")
	for _, why := range t.leftOut {
		t.say("Left out: %s.", why)
	}
	t.say("All as it should be, in %s.", rounded(time.Since(began)))
	return nil
}

// do runs a command that has to succeed. A command that fails is not an error of Execute. Its exit
// status is in the Result.
func (t *tour) do(ctx context.Context, command string) (*sandbox.Result, error) {
	t.command(command)
	res, err := t.box.Execute(ctx, command, sandbox.Timeout(time.Minute))
	t.result(res, err)
	if err == nil && (res.State != sandbox.Exited || res.ExitCode != 0) {
		err = fmt.Errorf("%q is %v with exit status %d", command, res.State, res.ExitCode)
	}
	return res, err
}

// keepState shows that a command finds what the one before it has left in the shell.
func (t *tour) keepState(ctx context.Context) error {
	t.say("All commands run in one shell. Its directory, variables and functions stay.")
	if _, err := t.do(ctx, "mkdir tour && cd tour && greeting=hello"); err != nil {
		return err
	}
	res, err := t.do(ctx, `echo "$greeting from ${PWD##*/}"`)
	if err == nil && res.Output != "hello from tour\n" {
		err = fmt.Errorf("the shell in %s says %q", res.Cwd, res.Output)
	}
	return err
}

//go:embed project
var project embed.FS

// buildProject copies a project into the box, builds and tests it there, and copies the program
// out.
func (t *tour) buildProject(ctx context.Context) error {
	temp, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.CopyFS(temp, project); err != nil {
		return err
	}
	t.say("CopyTo copies files and directories into the box. A relative path starts at the " +
		"shell's directory.")
	if err := t.box.CopyTo(ctx, filepath.Join(temp, "project"), "."); err != nil {
		return err
	}
	for _, command := range []string{"cd project && sh ./configure && make", "make check",
		"./primes 200"} {
		if _, err := t.do(ctx, command); err != nil {
			return err
		}
	}
	t.say("CopyFrom copies the result out of the box.")
	copied := filepath.Join(temp, "primes")
	if err := t.box.CopyFrom(ctx, "primes", copied); err != nil {
		return err
	}
	info, err := os.Stat(copied)
	if err == nil {
		t.say("primes is here: %d bytes, %v.", info.Size(), info.Mode())
	}
	return err
}

// answerQuestion answers a program. Execute returns when a program waits for input, and says for
// what kind of input. Input types the answer and waits again.
func (t *tour) answerQuestion(ctx context.Context) error {
	if t.local && runtime.GOOS != "linux" {
		// There, use Until: it returns when the question is in the output.
		t.leaveOut("on %s a LocalBox cannot tell that a program waits", runtime.GOOS)
		return nil
	}
	t.say("The Result says whether a program works or waits. The output need not be parsed.")
	res, err := t.do(ctx, "rm -i primes")
	if res == nil || res.State != sandbox.Waiting || res.Awaits != sandbox.Line {
		return fmt.Errorf("rm has not asked: %w", err)
	}
	t.input("y\n")
	res, err = t.box.Input(ctx, "y\n", sandbox.Timeout(time.Minute))
	t.result(res, err)
	if err == nil && (res.State != sandbox.Exited || res.ExitCode != 0) {
		err = fmt.Errorf("after the answer it is %v with exit status %d", res.State, res.ExitCode)
	}
	return err
}

// stopLoop stops a command that does not end. The shell and all that it knows stay.
func (t *tour) stopLoop(ctx context.Context) error {
	t.say("Timeout ends a command that takes too long: first with ^C, in the end with SIGKILL. " +
		"The error comes with a Result.")
	const loop = "echo round and round; while :; do :; done"
	t.command(loop)
	res, err := t.box.Execute(ctx, loop, sandbox.Timeout(time.Second))
	t.result(res, err)
	if !errors.Is(err, sandbox.ErrTimeout) || res.ExitCode != 130 {
		return fmt.Errorf("the endless loop has not timed out: %w", err)
	}
	t.say("The shell is the same, and so is its directory.")
	res, err = t.do(ctx, `echo "$greeting again"`)
	if err == nil && res.Output != "hello again\n" {
		err = fmt.Errorf("the shell has lost its variable, and says %q", res.Output)
	}
	return err
}
