package harness

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sandshell/sandshell/internal/printable"
)

// A Summary holds the results of a Run.
type Summary struct {
	Agent    string
	Results  []Result // of the tasks that have one, in the order of the tasks
	Tasks    int      // the number of all tasks
	Counts   map[Status]int
	Duration time.Duration // of this Run
}

func (r *runner) summary(d time.Duration) *Summary {
	s := &Summary{Agent: r.cfg.Name, Tasks: len(r.cfg.Tasks), Counts: map[Status]int{}, Duration: d}
	for _, t := range r.cfg.Tasks {
		if result, ok := r.results.of(t.ID); ok {
			s.Results = append(s.Results, result)
			s.Counts[result.Status]++
		}
	}
	return s
}

// Text returns the counts in one line: "3 pass, 1 fail of 4 tasks".
func (s *Summary) Text() string {
	counts := countsText(s.Counts)
	if counts == "" {
		counts = "no result"
	}
	text := fmt.Sprintf("%s of %d tasks", counts, s.Tasks)
	if s.Tasks == 1 {
		text = text[:len(text)-1]
	}
	return text
}

// WriteTable writes a table with a line for each task, times in seconds, and the counts below. It
// has a column for reference solutions if any task has one. Control characters are escaped.
func (s *Summary) WriteTable(w io.Writer) error {
	reference := slices.ContainsFunc(s.Results, func(r Result) bool {
		return r.Times.Reference > 0
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(task, status, ref, box, setup, agent, check, reason string) {
		cells := []string{task, status, ref, box, setup, agent, check, reason}
		if !reference {
			cells = slices.Delete(cells, 2, 3)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	row("TASK", "STATUS", "REFERENCE", "BOX", "SETUP", "AGENT", "CHECK", "REASON")
	for _, r := range s.Results {
		row(printable.Line(r.Task), printable.Line(string(r.Status)), seconds(r.Times.Reference),
			seconds(r.Times.Box), seconds(r.Times.Setup), seconds(r.Times.Agent),
			seconds(r.Times.Check), cut(firstLine(r.Reason), 80))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, s.Text())
	return err
}

func seconds(s float64) string { return fmt.Sprintf("%.1f", s) }
