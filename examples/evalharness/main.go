// Evalharness has an agent do tasks in containers, several at a time, and judges each.
//
//	go run ./examples/evalharness -agent oracle [flags] TASKS
//
// TASKS is a file of ours with a task a line (.jsonl), a directory with tasks in Harbor's form, or
// a file of InterCode's nl2bash (.json, with -image). The results go into a directory (-results),
// with logs and report.html; the same command again goes on where an earlier one was ended or
// killed. The exit status is 0 if all tasks have passed, 1 if not, 2 if the tasks could not be run.
package main

import (
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

TASKS is a .jsonl file of tasks, a directory with tasks in Harbor's form, or, with -image, a .json file of InterCode's nl2bash.

Agents:
  oracle         does the reference solution: every task should pass
  nop            does nothing: no task should pass
  script:FILE    types the lines of a file as commands
  mcp:PROGRAM    starts a program, with arguments, for each task: an MCP client on its standard input and output, which gets the box's tools;
                 HARNESS_INSTRUCTION in its environment says what to do

Flags:
`

// run runs the tasks; progress goes to stderr, the table to stdout.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int, err error) {
	o := harness.Config{Progress: stderr}
	flags := flag.NewFlagSet("evalharness", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { io.WriteString(stderr, usage); flags.PrintDefaults() }
	flags.StringVar(&o.Name, "agent", "", "the agent's `name`")
	flags.StringVar(&o.Dir, "results", "", "the `directory` of results (default results-AGENT)")
	flags.IntVar(&o.Parallel, "parallel", 0, "`how many` tasks at once (default: this machine's "+
		"processors)")
	flags.IntVar(&o.Ahead, "ahead", 1, "how `many` boxes of the tasks that come next are made "+
		"while there is no room for them; -1: none")
	memory := flags.String("memory", "", "`bytes` that tasks at once may take together, as 8g "+
		"(default: no bound)")
	flags.Float64Var(&o.CPUs, "cpus", 0, "`processors` that tasks at once may take together "+
		"(default: no bound)")
	flags.DurationVar(&o.Defaults.Time, "time", harness.DefaultLimits.Time,
		"time of an agent whose task does not say")
	flags.IntVar(&o.Retries, "retries", 2, "how `often` a task is tried again whose box the "+
		"infrastructure has lost; -1: never")
	image := flags.String("image", "", "the `image` for tasks of InterCode")
	var only, again []string
	flags.Func("only", "only tasks whose ID matches a `pattern`, as 'textwrap/*'; "+
		"several by commas, or by more -only", list(&only))
	flags.Func("again", "drop results that are there and run their tasks again: "+
		"statuses, IDs and "+harness.Changed+", `as` error,fail", list(&again))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0, err
		}
		return 2, err
	}
	if flags.NArg() != 1 || o.Name == "" {
		flags.Usage()
		return 2, errors.New("it takes -agent and, behind all flags, one place of tasks")
	}
	if o.Dir == "" {
		name, _, _ := strings.Cut(o.Name, ":")
		o.Dir = "results-" + name
	}
	if *memory != "" {
		if o.Memory, err = units.RAMInBytes(*memory); err != nil {
			return 2, fmt.Errorf("-memory: %w: write \"512m\", \"8g\"", err)
		}
	}
	if o.Agent, err = agent(o.Name); err != nil {
		return 2, err
	}
	if o.Tasks, err = read(flags.Arg(0), *image, only); err != nil {
		return 2, err
	}
	o.Again = again
	return evaluate(ctx, o, stdout)
}

// list adds what a flag says, by commas, each time that it is given.
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

// evaluate runs the tasks, and prints what has come of them.
func evaluate(ctx context.Context, o harness.Config, stdout io.Writer) (status int, err error) {
	summary, err := harness.Run(ctx, o)
	if errors.Is(err, harness.ErrChanged) {
		return 2, fmt.Errorf("%w\n(by -again %s, or -results)", err, harness.Changed)
	}
	if summary != nil && len(summary.Results) > 0 {
		summary.WriteTable(stdout)
		fmt.Fprintln(stdout, "report:", filepath.Join(o.Dir, "report.html"))
	}
	switch {
	case err != nil:
		return 2, err
	case summary.Counts[harness.Pass] < summary.Tasks:
		return 1, nil
	}
	return 0, nil
}

// read reads the tasks.
func read(path, image string, only []string) ([]harness.Task, error) {
	var tasks []harness.Task
	var err error
	intercode := filepath.Ext(path) == ".json"
	switch {
	case intercode && image == "":
		return nil, fmt.Errorf("%s: which image? A file of InterCode does not say; -image does",
			path)
	case !intercode && image != "":
		return nil, fmt.Errorf("-image is for a file of InterCode (.json): the tasks of %s name "+
			"their images themselves", path)
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
			return nil, fmt.Errorf("-only %q: no task has such an ID", pattern)
		}
	}
	return slices.DeleteFunc(tasks, func(t harness.Task) bool { return !wanted[t.ID] }), nil
}

// agent is the agent of that name.
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
		words := strings.Fields(rest)
		if err := harness.FindProgram(words...); err != nil {
			return nil, fmt.Errorf("-agent mcp: %w", err)
		}
		return harness.Program(words...), nil
	}
	return nil, fmt.Errorf("-agent %q: there are oracle, nop, script:FILE and mcp:PROGRAM", name)
}
