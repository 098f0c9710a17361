package harness

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"github.com/sandshell/sandshell/internal/printable"
)

// Text returns the counts in one line, with the change of pass@1: "2 better, 1 worse, 7 equal;
// pass@1 0.50 -> 0.60: +0.10 ± 0.18".
func (c *Comparison) Text() string {
	text := ""
	for _, change := range Changes {
		if n := c.Counts[change]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, change)
		}
	}
	if text == "" {
		return "no result in either run"
	}
	text = text[2:]
	for _, m := range c.Means {
		if m.Of == "pass" {
			return fmt.Sprintf("%s; %s %s -> %s: %s", text, m.Name, numberText(m.Before.Value),
				numberText(m.After.Value), changeText(m.Change))
		}
	}
	return text
}

// WriteTable writes a table with a line for each task that is not Equal, and one with a line for
// each mean. Below is Text. ± is the standard error of the mean of the differences, where at least
// two tasks count. Control characters are escaped.
func (c *Comparison) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(c.Tasks) > c.Counts[Equal] {
		fmt.Fprintln(t, "TASK\tCHANGE\tBEFORE\tAFTER\tREASON")
	}
	for _, task := range c.Tasks {
		if task.Change == Equal {
			continue
		}
		before, after, reason := task.Before.statusesText(), task.After.statusesText(), ""
		old, had := task.Before.points()
		if now, has := task.After.points(); had && has && before == after && old != now {
			before += fmt.Sprintf(" (%s)", numberText(old))
			after += fmt.Sprintf(" (%s)", numberText(now))
		}
		if task.After != nil {
			reason = task.After.Reason
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", printable.Line(task.Task), task.Change,
			printable.Line(before), printable.Line(after), truncate(firstLine(reason), 80))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(c.Means) > 0 {
		if len(c.Tasks) > c.Counts[Equal] {
			fmt.Fprintln(t)
		}
		fmt.Fprintln(t, "MEAN\tBEFORE\tAFTER\tCHANGE\tTASKS")
	}
	for _, m := range c.Means {
		name := printable.Line(m.Name)
		if m.Of == "time" {
			name += ", s"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\n", name, numberText(m.Before.Value),
			numberText(m.After.Value), changeText(m.Change), m.Change.Tasks)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	text := c.Text() + "\n"
	if n := c.Counts[Better] + c.Counts[Worse]; n > 0 {
		text += fmt.Sprintf("chance alone would split %d tasks into better and worse at least as "+
			"unevenly in %s %% of cases\n", n, strconv.FormatFloat(100*c.Chance, 'g', 2, 64))
	}
	_, err := io.WriteString(w, text)
	return err
}

// points returns the score "points".
func (t *TaskResults) points() (value float64, ok bool) {
	if t != nil {
		value, ok = t.Scores[PointsScore]
	}
	return value, ok
}

// numberText returns a number for people: 0.62, 12.3, 12345.
func numberText(value float64) string {
	switch size := math.Abs(value); {
	case size < 0.005:
		return "0.00" // without a sign
	case size < 10:
		return strconv.FormatFloat(value, 'f', 2, 64)
	case size < 1000:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case size < longNumber:
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

// changeText returns a text such as "+0.10 ± 0.18".
func changeText(r Rate) string {
	text := numberText(r.Value)
	if text[0] != '-' {
		text = "+" + text
	}
	if r.Tasks > 1 {
		text += " ± " + numberText(r.Error)
	}
	return text
}
