package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
)

// A Validation says which tasks prove nothing.
type Validation struct {
	Oracle, Nop *Summary
	Faults      []Fault // in the order of the tasks
}

// A Fault says why a result of a task proves nothing.
type Fault struct {
	Task string
	What string // safe to print
}

// Validate runs Oracle and then Nop at all tasks, and finds those that prove nothing: tasks that
// Nop passes, and tasks that Oracle does not. It writes the directories of results Dir/oracle and
// Dir/nop, and goes on where an earlier call ended, as Run does. Agent and Name must be empty.
//
// With Samples, a task has a fault if one sample has it, so that a check that does not always say
// the same is found.
func Validate(ctx context.Context, c Config) (*Validation, error) {
	switch {
	case c.Agent != nil || c.Name != "":
		return nil, errors.New("harness: Config.Agent and Config.Name: leave them empty, because " +
			"Validate runs Oracle and Nop")
	case c.Dir == "":
		return nil, errors.New("harness: Config.Dir: it is empty: name a directory for the results")
	}
	if c.References == "" {
		c.References = filepath.Join(c.Dir, "references")
	}
	oracle, nop := c, c
	oracle.Agent, oracle.Name, oracle.Dir = Oracle, "oracle", filepath.Join(c.Dir, "oracle")
	nop.Agent, nop.Name, nop.Dir = Nop, "nop", filepath.Join(c.Dir, "nop")
	v := &Validation{}
	var err error
	if v.Oracle, err = Run(ctx, oracle); err != nil {
		return nil, err
	}
	if v.Nop, err = Run(ctx, nop); err != nil {
		return nil, err
	}
	faults := map[string]string{}
	for _, r := range v.Nop.Results {
		if r.Status == Pass {
			faults[r.Task] = "an agent that does nothing passes"
		}
	}
	for _, r := range v.Oracle.Results {
		if r.Status != Pass {
			faults[r.Task] = fmt.Sprintf("the reference solution does not pass: %s%s", r.Status,
				withPrefix(": ", firstLine(r.Reason)))
		}
	}
	for _, t := range c.Tasks {
		if what, ok := faults[t.ID]; ok {
			v.Faults = append(v.Faults, Fault{t.ID, what})
		}
	}
	return v, nil
}

// Text returns a line such as "tasks that prove nothing: 2 of 30".
func (v *Validation) Text() string {
	return fmt.Sprintf("tasks that prove nothing: %d of %d", len(v.Faults), v.Oracle.Tasks)
}

// WriteTable writes a line for each fault, and Text below.
func (v *Validation) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(v.Faults) > 0 {
		fmt.Fprintln(t, "TASK\tPROVES NOTHING, BECAUSE")
	}
	for _, f := range v.Faults {
		fmt.Fprintf(t, "%s\t%s\n", f.Task, f.What)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, v.Text())
	return err
}
