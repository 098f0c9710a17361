package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/harness"
)

func evalCommand() *command {
	c := newCommand("eval", "[flags] TASKS", "runs an agent on many tasks, and judges each result")
	c.more = `
TASKS is a .jsonl file, a directory of tasks in Harbor's format or, with -image, a .json file of
InterCode's nl2bash: see docs/evaluation.md. Agents are oracle (the reference solution: every task
should pass), nop (nothing: none should pass), script:FILE (types the file's lines) and any program
that is an MCP client, with its arguments, which gets HARNESS_INSTRUCTION in its environment and the
box's tools on its standard input and output. Call it again to go on with a run that was killed.
The exit status is 0 if all tasks pass, 1 if not.
`
	c.examples = `
sandshell eval -agent oracle tasks
sandshell eval -agent "python3 agent.py" -parallel 4 tasks.jsonl
sandshell eval -agent nop -only 'textwrap/*,colorsys/sixth' -time 5m tasks.jsonl
sandshell eval -agent oracle -again error,fail tasks
sandshell eval -validate tasks
`
	at := c.placeFlag()
	var o harness.Config
	c.StringVar(&o.Name, "agent", "", "the `agent`")
	c.StringVar(&o.Dir, "results", "", "the `directory` of results (default results-AGENT)")
	c.StringVar(&o.Before, "before", "", "the `directory` of results of an earlier run, with "+
		"which the report compares")
	c.StringVar(&o.References, "references", "", "the `directory` for what reference solutions "+
		"leave, which several runs may share (default RESULTS/references)")
	c.Func("parallel", "how many `tasks` at once (default: the processors)", count(&o.Parallel, 1))
	c.Func("ahead", "how many `boxes` are made ahead for the next tasks; 0 means none (default 1)",
		count(&o.Ahead, 0))
	c.Func("samples", "how `often` each task is done, for pass@k (default 1)",
		count(&o.Samples, 1))
	c.Func("retries", "how `often` a task is tried again if its box is lost; 0 means never "+
		"(default 2)", count(&o.Retries, 0))
	c.Func("time", "how `long` the agent may take if the task does not say (default "+
		harness.DefaultLimits.Time.String()+")", func(text string) (err error) {
		o.Defaults.Time, err = time.ParseDuration(text)
		if err != nil || o.Defaults.Time <= 0 {
			return errors.New("give a time such as 90s or 10m")
		}
		return nil
	})
	c.Func("memory", "the `size` that all running tasks may take, as 8g (default: no limit)",
		size(&o.Memory))
	c.Func("cpus", "the `processors` that all running tasks may take, as 3.5 (default: no limit)",
		func(text string) (err error) {
			o.CPUs, err = strconv.ParseFloat(text, 64)
			if err != nil || !(o.CPUs > 0) || math.IsInf(o.CPUs, 1) {
				return errors.New("give a number of processors such as 4 or 3.5")
			}
			return nil
		})
	image := c.String("image", "", "the `image` for tasks of InterCode")
	var only []string
	c.Func("only", "run only tasks whose ID matches a `pattern`, as 'textwrap/*'; several with "+
		"commas", items(&only))
	c.Func("again", "drop `results` and run their tasks again: statuses or ids with commas",
		items(&o.Again))
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
		if o.Tasks, err = readTasks(args[0], *image, only); err != nil {
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
