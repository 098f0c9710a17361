// Evalharness runs an agent on tasks in containers, several at a time, and checks each result.
//
//	go run ./examples/evalharness -agent oracle [flags] TASKS
//
// TASKS is a .jsonl file with a task on each line, a directory of tasks in Harbor's format, or,
// with -image, a .json file of InterCode's nl2bash. The results, logs and report.html go into a
// directory (-results). If the program is interrupted or killed, the same command goes on where it
// ended.
//
// The exit status is 0 if all tasks have passed, 1 if not, and 2 if the tasks could not be run.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/docker/go-units"

	"github.com/sandshell/sandshell/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "evalharness:", err)
	}
	os.Exit(status)
}

const usage = `usage: evalharness -agent NAME [flags] TASKS

TASKS is a .jsonl file with a task on each line, a directory of tasks in Harbor's format,
or, with -image, a .json file of InterCode's nl2bash.

Agents:
  oracle         runs the reference solution: every task should pass
  nop            does nothing: no task should pass
  script:FILE    types the lines of a file as commands
  mcp:PROGRAM    starts a program, with arguments, for each task. The program is an MCP
                 client on its standard input and output, and gets the box's tools.
                 HARNESS_INSTRUCTION in its environment says what to do.

Flags:
`

// run parses the command line and runs the tasks. The table goes to stdout, and progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int, err error) {
	o := harness.Config{Progress: stderr}
	flags := flag.NewFlagSet("evalharness", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { io.WriteString(stderr, usage); flags.PrintDefaults() }
	flags.StringVar(&o.Name, "agent", "", "the agent's `name`")
	flags.StringVar(&o.Dir, "results", "", "the `directory` of results (default results-AGENT)")
	flags.IntVar(&o.Parallel, "parallel", 0, "`how many` tasks at once (default: this machine's "+
		"processors)")
	flags.IntVar(&o.Ahead, "ahead", 1, "how `many` boxes are made ahead for the next tasks; "+
		"-1 means none")
	memory := flags.String("memory", "", "the `bytes` that all running tasks may take, as in 8g "+
		"(default: no limit)")
	flags.Float64Var(&o.CPUs, "cpus", 0, "the `processors` that all running tasks may take "+
		"(default: no limit)")
	flags.DurationVar(&o.Defaults.Time, "time", harness.DefaultLimits.Time,
		"how long the agent may take if the task does not say")
	flags.IntVar(&o.Retries, "retries", 2, "how `often` a task is tried again if the "+
		"infrastructure has lost its box; -1 means never")
	flags.IntVar(&o.Samples, "samples", 1, "how `often` each task is done, for pass@k")
	validate := flags.Bool("validate", false, "find the tasks that prove nothing: those that the "+
		"oracle does not pass, or that nop passes; without -agent")
	image := flags.String("image", "", "the `image` for tasks of InterCode")
	var only, again []string
	flags.Func("only", "run only tasks whose ID matches a `pattern`, such as 'textwrap/*'; "+
		"give several with commas or with several -only", list(&only))
	flags.Func("again", "drop `results` and run their tasks again; give statuses or IDs, as in "+
		"error,fail", list(&again))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0, err
		}
		return 2, err
	}
	if flags.NArg() != 1 || (o.Name == "") != *validate {
		flags.Usage()
		return 2, errors.New("give -agent or -validate and, after all flags, TASKS")
	}
	if o.Dir == "" {
		name, _, _ := strings.Cut(o.Name, ":")
		o.Dir = "results-" + cmp.Or(name, "validate")
	}
	if *memory != "" {
		if o.Memory, err = units.RAMInBytes(*memory); err != nil {
			return 2, fmt.Errorf("-memory: %w: give a size such as 512m or 8g", err)
		}
	}
	if o.Tasks, err = read(flags.Arg(0), *image, only); err != nil {
		return 2, err
	}
	o.Again = again
	if *validate {
		return findFaults(ctx, o, stdout)
	}
	if o.Agent, err = agent(o.Name); err != nil {
		return 2, err
	}
	return evaluate(ctx, o, stdout)
}

// findFaults prints the tasks that prove nothing.
func findFaults(ctx context.Context, o harness.Config, stdout io.Writer) (status int, err error) {
	v, err := harness.Validate(ctx, o)
	if err != nil {
		return 2, err
	}
	if len(v.Faults) > 0 {
		status = 1
	}
	return status, v.WriteTable(stdout)
}

// list returns a function for flag.Func that adds the items of a list with commas.
func list(to *[]string) func(string) error {
	return func(s string) error {
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*to = append(*to, item)
			}
		}
		return nil
	}
}

// evaluate runs the tasks and prints the results.
func evaluate(ctx context.Context, o harness.Config, stdout io.Writer) (status int, err error) {
	summary, err := harness.Run(ctx, o)
	if summary != nil && len(summary.Results) > 0 {
		summary.WriteTable(stdout)
		fmt.Fprintln(stdout, "report:", filepath.Join(o.Dir, "report.html"))
	}
	switch {
	case err != nil:
		return 2, err
	case summary.Counts[harness.Pass] < summary.Tasks*summary.Samples:
		return 1, nil
	}
	return 0, nil
}

// read reads the tasks at a path, and selects those that match only.
func read(path, image string, only []string) ([]harness.Task, error) {
	var tasks []harness.Task
	var err error
	intercode := filepath.Ext(path) == ".json"
	switch {
	case intercode && image == "":
		return nil, fmt.Errorf("%s: a file of InterCode names no image: give -image", path)
	case !intercode && image != "":
		return nil, fmt.Errorf("-image is only for a .json file of InterCode: leave it out, as "+
			"the tasks of %s name their images", path)
	case intercode:
		tasks, err = harness.ReadInterCode(path, harness.InterCode{Image: image})
	default:
		tasks, err = harness.Read(path)
	}
	if err != nil || len(only) == 0 {
		return tasks, err
	}
	wanted := map[string]bool{} // by ID
	for _, pattern := range only {
		found := false
		for _, t := range tasks {
			ok, err := filepath.Match(pattern, t.ID)
			if err != nil {
				return nil, fmt.Errorf("-only %q: %w", pattern, err)
			}
			wanted[t.ID] = wanted[t.ID] || ok
			found = found || ok
		}
		if !found {
			return nil, fmt.Errorf("-only %q: no task's ID matches it", pattern)
		}
	}
	return slices.DeleteFunc(tasks, func(t harness.Task) bool { return !wanted[t.ID] }), nil
}

// agent returns the agent with a name.
func agent(name string) (harness.Agent, error) {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "oracle":
		return harness.Oracle, nil
	case "nop":
		return harness.Nop, nil
	case "script":
		data, err := os.ReadFile(rest)
		if err != nil {
			return nil, fmt.Errorf("-agent script: %w", err)
		}
		return harness.Scripted(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), nil),
			nil
	case "mcp":
		return harness.Program(strings.Fields(rest)...)
	}
	return nil, fmt.Errorf("-agent %q: give oracle, nop, script:FILE or mcp:PROGRAM", name)
}
