package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox"
)

func execCommand() *command {
	c := newCommand("exec", "[flags] BOX COMMAND [ARGUMENT...]",
		"runs a command in a box that is there")
	c.more = `
The command has a terminal if standard input and output are terminals: see sandshell help run.

With -session, the box's shell of that name executes the command, and remembers: the directory,
variables and what was activated are there at the next call. "main" is always there. The command is
then a line of shell, and nobody answers its questions. Its output, up to 1 MiB, comes at its end.

Several programs may use a box at once, each a session at a time.
`
	c.examples = `
sandshell exec BOX ls -l /
sandshell exec -session main BOX 'cd /tmp && X=1'
sandshell exec -session main BOX 'echo $X in $PWD'
sandshell exec -json BOX sh -c 'make test'
`
	c.tail = true
	c.takes = []argument{takesBox, takesNothing}
	at := c.placeFlag()
	var e execution
	c.StringVar(&e.user, "user", "", "run as another `user` of the box")
	c.StringVar(&e.dir, "dir", "", "the `directory` in which the command starts")
	c.Func("env", "a variable, as `NAME=value`, or as NAME to pass on sandshell's own; may be "+
		"repeated", environment(&e.env))
	c.StringVar(&e.session, "session", "", "the `shell` of the box that executes the command: main")
	c.BoolVar(&e.json, "json", false, "print the result as JSON")
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if err := c.need(args, 2, -1); err != nil {
			return err
		}
		if e.session != "" && (e.user != "" || e.dir != "" || e.env != nil) {
			return usage("a session has its own user, directory and variables: leave out " +
				"-session, or -user, -dir and -env")
		}
		box, err := joinBox(ctx, w, args[0])
		if err != nil {
			return err
		}
		e.args = args[1:]
		err = execute(ctx, box, e)
		if errors.Is(err, errLeft) {
			err = nil
		}
		return errors.Join(err, detach(box))
	}
	return c
}

// An execution is a command for a box.
type execution struct {
	args      []string // none: a shell
	user, dir string
	env       []string
	session   string // the shell that executes it; "": none
	json      bool
}

// execute executes a command and passes its status on.
func execute(ctx context.Context, box sandbox.Sandbox, e execution) error {
	switch {
	case e.session != "":
		return inSession(ctx, box, e)
	case !e.json && isTerminal(os.Stdin) && isTerminal(os.Stdout):
		return onTerminal(ctx, box, e)
	}
	if len(e.args) == 0 {
		e.args = []string{"sh"} // which reads its script from standard input
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := &sandbox.Cmd{Args: e.args, User: e.user, Dir: e.dir, Env: e.env}
	if !isTerminal(os.Stdin) {
		cmd.Stdin = os.Stdin
	}
	stdout, stderr := headtail.Buffer{Max: sandbox.DefaultMaxOutput},
		headtail.Buffer{Max: sandbox.DefaultMaxOutput}
	cmd.Stdout, cmd.Stderr = &pipe{os.Stdout, cancel}, &pipe{os.Stderr, cancel}
	if e.json {
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
	}
	began := time.Now()
	status, err := box.Run(ctx, cmd)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && status != 126 && status != 127 {
		return err
	}
	if err != nil {
		say(notExecuted(e.args, err))
	}
	if e.json {
		r := result{Status: status, Seconds: time.Since(began).Seconds()}
		r.Stdout, r.Omitted = stdout.Text()
		r.Stderr, r.OmittedErr = stderr.Text()
		if err := printJSON(r); err != nil {
			return err
		}
	}
	return statusError(status)
}

// A result of a command is printed as JSON.
type result struct {
	Status     int     `json:"exit_code"`
	Stdout     string  `json:"stdout"`
	Stderr     string  `json:"stderr"`
	Omitted    int64   `json:"stdout_omitted,omitempty"` // bytes left out of the middle
	OmittedErr int64   `json:"stderr_omitted,omitempty"`
	Seconds    float64 `json:"seconds"`
}

// notExecuted says why the box has no such program, and what to do.
func notExecuted(args []string, err error) string {
	text := err.Error()
	if len(args) == 1 && strings.ContainsAny(args[0], " |&;<>$") {
		text += ": a line of shell is for sh -c " + shellquote.Quote(args[0])
	}
	return text
}

// quoted returns a program and its arguments as a line for a shell.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = shellquote.Quote(a)
	}
	return strings.Join(words, " ")
}

// pipe is an output of a command. If it is broken, cancel ends the command.
type pipe struct {
	io.Writer
	cancel context.CancelCauseFunc
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if err != nil {
		p.cancel(errBrokenPipe)
	}
	return n, err
}

// inSession executes a line in a shell of the box that stays.
func inSession(ctx context.Context, box sandbox.Sandbox, e execution) error {
	session, ok := box.Session(e.session)
	if !ok {
		var ids []string
		for _, s := range box.Sessions() {
			ids = append(ids, s.ID())
		}
		return usage("the box has no session %q: %s", e.session,
			didYouMean(e.session, ids, "it has "+strings.Join(ids, ", ")))
	}
	line := e.args[0]
	if len(e.args) > 1 {
		line = quoted(e.args)
	}
	res, err := session.Execute(ctx, line, sandbox.AtQuestion(sandbox.Fail))
	if res != nil && !e.json {
		fmt.Print(res.Output)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	if e.json {
		if err := printJSON(struct {
			Status  int     `json:"exit_code"`
			Output  string  `json:"output"`
			Omitted int64   `json:"omitted,omitempty"`
			Cwd     string  `json:"cwd"`
			Seconds float64 `json:"seconds"`
		}{res.ExitCode, res.Output, res.Omitted, res.Cwd, res.Duration.Seconds()}); err != nil {
			return err
		}
	}
	return statusError(res.ExitCode)
}
