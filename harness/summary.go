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
	Dir      string   // of the results
	Results  []Result // in the order of the tasks, with the samples of a task together
	Tasks    int      // the number of all tasks
	Samples  int      // of each task
	Counts   map[Status]int
	Duration time.Duration // of this Run
}

func (r *runner) summary(d time.Duration) *Summary {
	s := &Summary{Agent: r.cfg.Name, Dir: r.cfg.Dir, Tasks: len(r.cfg.Tasks),
		Samples: r.cfg.Samples, Counts: map[Status]int{}, Duration: d}
	for _, t := range r.cfg.Tasks {
		for n := range s.Samples {
			if result, ok := r.results.get(sampleID{t.ID, n + 1}); ok {
				result.Tags = t.Tags // they may have changed
				s.Results = append(s.Results, result)
				s.Counts[result.Status]++
			}
		}
	}
	return s
}

// Text returns the counts in one line: "3 pass, 1 fail of 4 tasks". If there are several samples,
// it has pass@1 and pass@Samples too.
func (s *Summary) Text() string {
	counts := countsText(s.Counts)
	if counts == "" {
		counts = "no result"
	}
	text := fmt.Sprintf("%s of ", counts)
	if s.Samples > 1 {
		text += fmt.Sprintf("%d samples of ", s.Samples*s.Tasks)
	}
	text += fmt.Sprintf("%d tasks", s.Tasks)
	if s.Tasks == 1 {
		text = text[:len(text)-1]
	}
	if first := s.PassAt(1); s.Samples > 1 && first.Tasks > 0 {
		text += fmt.Sprintf("; pass@1 %v, pass@%d %v", first, s.Samples, s.PassAt(s.Samples))
	}
	return text
}

// WriteTable writes a table with a line for each task, times in seconds. It has a column for
// reference solutions if any task has one. Below are the means of scores, the sums of counts, and
// Text. Control characters are escaped.
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
		row(printable.Line(r.id().String()), statusText(r), seconds(r.Times.Reference),
			seconds(r.Times.Box), seconds(r.Times.Setup), seconds(r.Times.Agent),
			seconds(r.Times.Check), truncate(firstLine(r.Reason), 80))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := s.writeNumbers(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, s.Text())
	return err
}

// statusText returns a result's status, and the status before the task was changed.
func statusText(r Result) string {
	text := printable.Line(string(r.Status))
	if r.Before != "" {
		text += fmt.Sprintf(" (changed, was %s)", printable.Line(string(r.Before)))
	}
	return text
}

func seconds(s float64) string { return fmt.Sprintf("%.1f", s) }
