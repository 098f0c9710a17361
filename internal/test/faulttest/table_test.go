package faulttest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// A summary counts the results of all rounds.
type summary struct {
	faults []fault

	mu    sync.Mutex
	lines map[string]*line
	wrong []string
}

// A line counts the results of the rounds of one fault.
type line struct {
	rounds, right, wrong int
	typed                map[string]int
	slowest              time.Duration
	what                 string // the slowest call
}

func (s *summary) add(name string, do func(*line)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[name]
	if l == nil {
		l = &line{typed: map[string]int{}}
		s.lines[name] = l
	}
	do(l)
}

// String returns a table with a line for each fault.
func (s *summary) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := map[string]bool{}
	total := &line{typed: map[string]int{}}
	for _, l := range s.lines {
		total.rounds, total.right, total.wrong = total.rounds+l.rounds, total.right+l.right,
			total.wrong+l.wrong
		if l.slowest > total.slowest {
			total.slowest, total.what = l.slowest, l.what
		}
		for kind, n := range l.typed {
			kinds[kind] = true
			total.typed[kind] += n
		}
	}
	var columns []string
	for kind := range kinds {
		columns = append(columns, kind)
	}
	slices.Sort(columns)
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "fault\trounds\tright\t%s\twrong\tslowest return\t\n",
		strings.Join(columns, "\t"))
	row := func(name string, l *line) {
		fmt.Fprintf(w, "%s\t%d\t%d\t", name, l.rounds, l.right)
		for _, kind := range columns {
			fmt.Fprintf(w, "%d\t", l.typed[kind])
		}
		fmt.Fprintf(w, "%d\t%s %.1f s\t\n", l.wrong, l.what, l.slowest.Seconds())
	}
	for _, f := range s.faults {
		if l := s.lines[f.name]; l != nil {
			row(f.name, l)
		}
	}
	row("all", total)
	w.Flush()
	// The failures are in the log already. They come again at its end, where they are easy to find.
	for _, wrong := range s.wrong {
		fmt.Fprintln(&text, wrong)
	}
	return text.String()
}
