package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

func logsCommand() *command {
	c := newCommand("logs", "[flags] BOX [JOB]", "prints what a job of a box has printed")
	c.more = `
sandshell run -detach starts jobs. Without JOB it is the only job of the box. On a terminal,
control characters are escaped, as \x1b, unless there is -raw. With -f, logs goes on until the job
ends. ^C ends logs, and the job goes on.
`
	c.examples = `
sandshell logs BOX
sandshell logs -f BOX job-1
sandshell logs -json BOX
`
	c.takes = []argument{takesBox, takesNothing}
	at := c.placeFlag()
	raw := c.Bool("raw", false, "print control characters as they are, also on a terminal")
	follow := c.Bool("f", false, "go on with what the job prints, until it ends")
	asJSON := c.Bool("json", false, "print the jobs and their states as JSON, not what they have "+
		"printed")
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if err := c.need(args, 1, 2); err != nil {
			return err
		}
		if *asJSON && *follow {
			return usage("logs: give -f or -json, and not both")
		}
		box, err := joinBox(ctx, w, args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return errors.Join(printJobs(ctx, box), detach(box))
		}
		job, err := findJob(box, args[1:])
		if err == nil {
			p := &logPrinter{job: job, escaped: !*raw && isTerminal(os.Stdout)}
			if *follow {
				err = p.follow(ctx)
			} else {
				err = p.print(ctx)
			}
			err = errors.Join(err, p.end())
		}
		return errors.Join(err, detach(box))
	}
	return c
}

// findJob returns the job that args name, or the only one.
func findJob(box sandbox.Sandbox, args []string) (sandbox.Job, error) {
	var ids []string
	for _, j := range box.Jobs() {
		ids = append(ids, j.ID())
	}
	switch {
	case len(args) == 1:
		if job, ok := box.Job(args[0]); ok {
			return job, nil
		}
		return nil, fmt.Errorf("the box has no job %q: %s", args[0],
			didYouMean(args[0], ids, "it has "+strings.Join(ids, ", ")))
	case len(ids) == 0:
		return nil, errors.New("the box has no jobs: sandshell run -detach starts one")
	case len(ids) > 1:
		return nil, fmt.Errorf("the box has %d jobs: name one of %s", len(ids),
			strings.Join(ids, ", "))
	}
	return box.Jobs()[0], nil
}

// A logPrinter prints the log of a job.
type logPrinter struct {
	job     sandbox.Job
	escaped bool
	offset  int64  // of what comes next
	rest    []byte // the beginning of a character, if escaped
}

// print prints what the job has printed since the last print.
func (p *logPrinter) print(ctx context.Context) error {
	for {
		data, next, err := p.job.Logs(ctx, p.offset)
		if err != nil || next <= p.offset {
			return err
		}
		p.offset = next
		if p.escaped {
			data = append(p.rest, data...)
			n := wholeRunes(data)
			data, p.rest = data[:n], append([]byte(nil), data[n:]...)
		}
		if err := p.write(data); err != nil {
			return err
		}
	}
}

// wholeRunes returns how many bytes of text come before an unfinished character at its end.
func wholeRunes(text []byte) int {
	for n := len(text) - 1; n >= 0 && n >= len(text)-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			if !utf8.FullRune(text[n:]) {
				return n
			}
			break
		}
	}
	return len(text)
}

func (p *logPrinter) write(data []byte) error {
	if p.escaped {
		data = []byte(printable.Text(string(data)))
	}
	if _, err := os.Stdout.Write(data); err != nil {
		return errBrokenPipe
	}
	return nil
}

// end prints an unfinished character at the end.
func (p *logPrinter) end() error { return p.write(p.rest) }

var anything = regexp.MustCompile(`(?s).`)

// follow prints what the job has printed, and what it prints until its end.
func (p *logPrinter) follow(ctx context.Context) error {
	for {
		// Wait until the job has printed more, or has ended. Another program answers its questions.
		r, err := p.job.Until(ctx, sandbox.Until(anything), sandbox.AtQuestion(sandbox.KeepWaiting))
		if printErr := p.print(context.WithoutCancel(ctx)); printErr != nil {
			return printErr
		}
		if err != nil || r.State == sandbox.Exited {
			return err
		}
	}
}

// printJobs prints the jobs of a box.
func printJobs(ctx context.Context, box sandbox.Sandbox) error {
	type jobInfo struct {
		ID      string `json:"id"`
		Command string `json:"command"`
		State   string `json:"state"`
		Status  int    `json:"exit_code"` // -1: it has not ended
	}
	jobs := []jobInfo{} // not nil, for JSON
	for _, j := range box.Jobs() {
		res, err := j.Status(ctx)
		if err != nil {
			return err
		}
		jobs = append(jobs, jobInfo{j.ID(), j.Command(), res.State.String(), res.ExitCode})
	}
	return printJSON(jobs)
}
