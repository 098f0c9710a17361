package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/sandshell/sandshell/harness"
)

func compareCommand() *command {
	c := newCommand("compare", "[flags] BEFORE AFTER", "compares two runs of sandshell eval")
	c.more = `
BEFORE and AFTER are directories of results. It prints the tasks that are better, worse, changed or
in one run only, and how the means of pass@k, scores, counts and times differ: of the tasks that
both runs know, with the standard error of the differences. The exit status is 1 if a task is worse.
`
	c.examples = `
sandshell compare results-old results-new
sandshell compare -report results-nop results-agent
`
	report := c.Bool("report", false, "put the comparison into the report of AFTER")
	asJSON := c.jsonFlag()
	c.run = func(_ context.Context, args []string) error {
		if err := c.need(args, 2, 2); err != nil {
			return err
		}
		var runs [2]*harness.Summary
		for i, dir := range args {
			var err error
			if runs[i], err = harness.ReadResults(dir); err != nil {
				return err
			}
		}
		compared := harness.Compare(runs[0], runs[1])
		var err error
		if *asJSON {
			err = printJSON(compared)
		} else {
			err = compared.WriteTable(os.Stdout)
		}
		if *report {
			err = errors.Join(err, compared.WriteReport())
			say("the report is " + filepath.Join(args[1], "report.html"))
		}
		if err == nil && compared.Counts[harness.Worse] > 0 {
			err = exitStatus(1)
		}
		return err
	}
	return c
}
