package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandshell/sandshell/harness"
)

func evalCommand() *command {
	c := newCommand("eval", "[flags] TASKS", "runs an agent on many tasks, and judges each result")
	c.more = `
TASKS is a .jsonl file or a directory of tasks in Harbor's format: see docs/evaluation.md. Agents
are oracle (the reference solution: every task should pass), nop (nothing: none should pass),
script:FILE (types the file's lines) and any program that is an MCP client, with its arguments,
which gets HARNESS_INSTRUCTION in its environment and the box's tools on its standard input and
output. Call it again to go on with a run that was killed. The exit status is 0 if all tasks pass,
1 if not.
`
	c.examples = `
sandshell eval -agent oracle tasks
sandshell eval -agent "python3 agent.py" -parallel 4 tasks.jsonl
sandshell eval -validate tasks
`
	at := c.placeFlag()
	var o harness.Config
	c.StringVar(&o.Name, "agent", "", "the `agent`")
	c.StringVar(&o.Dir, "results", "", "the `directory` of results (default results-AGENT)")
	c.StringVar(&o.Before, "before", "", "the `directory` of results of an earlier run, with "+
		"which the report compares")
	c.IntVar(&o.Parallel, "parallel", 0, "how many `tasks` at once (default: the processors)")
	c.IntVar(&o.Samples, "samples", 1, "how `often` each task is done, for pass@k")
	c.Func("memory", "the `size` that all running tasks may take, as 8g (default: no limit)",
		size(&o.Memory))
	c.Func("again", "drop `results` and run their tasks again: statuses or ids with commas",
		func(text string) error {
			o.Again = append(o.Again, strings.Split(text, ",")...)
			return nil
		})
	validate := c.Bool("validate", false, "find the tasks that prove nothing, in the place of an "+
		"-agent")
	asJSON := c.jsonFlag()
	c.run = func(ctx context.Context, args []string) error {
		w, err := at()
		if err != nil {
			return err
		}
		if err := c.need(args, 1, 1); err != nil {
			return err
		}
		if o.Tasks, err = harness.Read(args[0]); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: give a .jsonl file or a directory of tasks: docs/evaluation.md "+
				"shows both", err)
		} else if err != nil {
			return err
		}
		if (o.Name == "") != *validate {
			return usage("eval: give -agent or -validate, and not both")
		}
		if o.Place, err = w.place(making{boxes: 100}); err != nil {
			return err
		}
		o.Progress = os.Stderr
		name, _, _ := strings.Cut(cmp.Or(o.Name, "validate"), ":")
		o.Dir = cmp.Or(o.Dir, "results-"+filepath.Base(strings.Fields(name + " ")[0]))
		if *validate {
			return findFaults(ctx, o, *asJSON)
		}
		if o.Agent, err = agent(o.Name); err != nil {
			return err
		}
		return evaluate(ctx, o, *asJSON)
	}
	return c
}

// evaluate runs the tasks and prints the results.
func evaluate(ctx context.Context, o harness.Config, asJSON bool) error {
	summary, err := harness.Run(ctx, o)
	if summary != nil && len(summary.Results) > 0 {
		if asJSON {
			err = errors.Join(err, printJSON(summary))
		} else {
			err = errors.Join(err, summary.WriteTable(os.Stdout))
			say("the report is " + filepath.Join(o.Dir, "report.html"))
		}
	}
	if err != nil {
		return err
	}
	if summary.Counts[harness.Pass] < summary.Tasks*summary.Samples {
		return exitStatus(1)
	}
	return nil
}

// findFaults prints the tasks that prove nothing.
func findFaults(ctx context.Context, o harness.Config, asJSON bool) error {
	v, err := harness.Validate(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(v.Faults)
	} else {
		err = v.WriteTable(os.Stdout)
	}
	if err == nil && len(v.Faults) > 0 {
		return exitStatus(1)
	}
	return err
}

// agent returns the agent of a name.
func agent(name string) (harness.Agent, error) {
	switch name {
	case "oracle":
		return harness.Oracle, nil
	case "nop":
		return harness.Nop, nil
	}
	if file, ok := strings.CutPrefix(name, "script:"); ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%w: -agent script:FILE takes a file of command lines", err)
		}
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		return harness.Scripted(lines, nil), nil
	}
	return harness.Program(strings.Fields(name)...)
}
