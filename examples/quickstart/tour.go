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

// A tour is work in a box, with everything checked on the way.
type tour struct {
	*transcript
	box     sandbox.Sandbox
	local   bool
	leftOut []string
}

// take takes the tour. On this machine it leaves out a chapter that needs a program which is not
// here: an example should not install any.
func (t *tour) take(ctx context.Context) error {
	began := time.Now()
	for _, chapter := range []struct {
		title string
		needs string
		steps func(context.Context) error
	}{
		{"The shell remembers", "sh", t.remembers},
		{"A project is built, tested and fetched", "make", t.builds},
		{"A program that asks is answered", "rm", t.answers},
		{"A server in the background is reached", "python3", t.serves},
		{"A runaway loop is stopped", "sh", t.runsAway},
	} {
		t.title(chapter.title)
		// Run is for programs that need neither shell nor terminal: it keeps stdout and stderr
		// apart, and leaves no trace in any session.
		code, err := t.box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", `command -v "$1"`, "sh",
			chapter.needs}})
		switch {
		case err == nil && code == 0:
			err = chapter.steps(ctx)
		case err == nil && t.local:
			t.leaveOut("there is no %s on this machine", chapter.needs)
		case err == nil:
			err = fmt.Errorf("there is no %s in the image", chapter.needs)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", chapter.title, err)
		}
	}
	t.title("Done")
	for _, why := range t.leftOut {
		t.say("Left out: %s.", why)
	}
	t.say("All as it should be, in %s.", took(time.Since(began)))
	return nil
}

// do runs a command that has to succeed. To Execute a failing command is no error: its exit status
// is data, in the Result.
func (t *tour) do(ctx context.Context, command string) (*sandbox.Result, error) {
	t.command(command)
	res, err := t.box.Execute(ctx, command, sandbox.Timeout(time.Minute))
	t.result(res, err)
	if err == nil && (res.State != sandbox.Exited || res.ExitCode != 0) {
		err = fmt.Errorf("%q is %v with exit status %d", command, res.State, res.ExitCode)
	}
	return res, err
}

// remembers: what one command leaves behind is there for the next.
func (t *tour) remembers(ctx context.Context) error {
	t.say("All commands go to one shell. Directory, variables and functions stay, as for a person.")
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

// builds copies a project into the box, works on it, and copies the program out.
func (t *tour) builds(ctx context.Context) error {
	temp, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.CopyFS(temp, project); err != nil {
		return err
	}
	t.say("CopyTo brings files and directories into the box. A relative path starts where the " +
		"shell is.")
	if err := t.box.CopyTo(ctx, filepath.Join(temp, "project"), "."); err != nil {
		return err
	}
	for _, command := range []string{"cd project && sh ./configure && make", "make check",
		"./primes 200"} {
		if _, err := t.do(ctx, command); err != nil {
			return err
		}
	}
	t.say("CopyFrom fetches what has been made.")
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

// answers: Execute returns when a program waits for input, and says for what. Input goes on.
func (t *tour) answers(ctx context.Context) error {
	// Until would do: return when the question is in the output
	if t.local && runtime.GOOS != "linux" {
		t.leaveOut("on %s a LocalBox cannot tell that a program waits", runtime.GOOS)
		return nil
	}
	t.say("Nobody has to guess from the output whether a program works or waits: the Result says.")
	res, err := t.do(ctx, "rm -i primes")
	if res == nil || res.State != sandbox.Waiting || res.Awaits != sandbox.Line {
		return fmt.Errorf("rm has not asked: %w", err)
	}
	t.typing("y\n")
	res, err = t.box.Input(ctx, "y\n", sandbox.Timeout(time.Minute))
	t.result(res, err)
	if err == nil && (res.State != sandbox.Exited || res.ExitCode != 0) {
		err = fmt.Errorf("after the answer it is %v with exit status %d", res.State, res.ExitCode)
	}
	return err
}

// runsAway: Timeout kills a command, and nothing is lost but the loop.
func (t *tour) runsAway(ctx context.Context) error {
	t.say("Timeout ends what does not end: with ^C first, and with SIGKILL in the end. The error " +
		"comes with a Result.")
	const loop = "echo round and round; while :; do :; done"
	t.command(loop)
	res, err := t.box.Execute(ctx, loop, sandbox.Timeout(time.Second))
	t.result(res, err)
	if !errors.Is(err, sandbox.ErrTimeout) || res.ExitCode != 130 {
		return fmt.Errorf("a loop without end has ended by itself: %w", err)
	}
	t.say("The shell is the same, where it was.")
	res, err = t.do(ctx, `echo "$greeting again"`)
	if err == nil && res.Output != "hello again\n" {
		err = fmt.Errorf("the shell has forgotten, and says %q", res.Output)
	}
	return err
}
