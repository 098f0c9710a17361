package harness

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// A Summary is what a Run has come to.
type Summary struct {
	Agent    string
	Results  []Result // of the tasks that have one, in the order of the tasks
	Tasks    int      // how many there are
	Counts   map[Status]int
	Duration time.Duration // of this Run
}

func (r *runner) summary(d time.Duration) *Summary {
	s := &Summary{Agent: r.Name, Tasks: len(r.Tasks), Counts: map[Status]int{}, Duration: d}
	for _, t := range r.Tasks {
		if result, ok := r.results.of(t.ID); ok {
			s.Results = append(s.Results, result)
			s.Counts[result.Status]++
		}
	}
	return s
}

// Text is the counts in one line: "3 pass, 1 fail of 4 tasks".
func (s *Summary) Text() string {
	text := fmt.Sprintf("%s of %d tasks", countsText(s.Counts), s.Tasks)
	if s.Tasks == 1 {
		text = text[:len(text)-1]
	}
	return text
}

// WriteTable writes a table, a task a line, with times in seconds, and the counts below.
func (s *Summary) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TASK\tSTATUS\tBOX\tSETUP\tAGENT\tCHECK\tREASON")
	for _, r := range s.Results {
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\n", r.Task, r.Status, r.Times.Box, r.Times.Setup, r.Times.Agent, r.Times.Check, cut(firstLine(r.Reason), 80))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, s.Text())
	return err
}
