package sandboxtest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A telling is what the first Result of a trial with State Waiting has told, and how soon.
type telling int

const (
	sureSoon    telling = iota // it cannot go on
	sureLater                  // the same, later than soon
	mayGoOn                    // it may go on, before patience: the terminal shows a question
	mayGoOnLast                // it may go on, after patience
	never                      // nothing: it was running
	tellings
)

func (n telling) String() string {
	return [...]string{"sure at once", "sure later", "may go on, 1 s", "may go on, 5 s", "never"}[n]
}

// told returns what a Result tells of a command that has just been watched.
func (w *observed) told(res *sandbox.Result) telling {
	after := w.after()
	switch {
	case res.State != sandbox.Waiting:
		return never
	case !res.MayGoOn && after <= soon:
		return sureSoon
	case !res.MayGoOn:
		return sureLater
	case after < patience-time.Second/2:
		return mayGoOn
	}
	return mayGoOnLast
}

// A tally counts what was told.
type tally struct {
	mu     sync.Mutex
	counts [works + 1][tellings]int
	late   []string // trials that ask, and were told late
}

// add counts a trial. After is how long ago it had printed something when it was told.
func (a *tally) add(r trial, n telling, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[r.truth][n]++
	if r.truth == asks && n != sureSoon {
		a.late = append(a.late, fmt.Sprintf("%s (%v: %v)", r.name, n,
			after.Round(10*time.Millisecond)))
	}
}

// String returns the table of truths and what was told.
func (a *tally) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s strings.Builder
	fmt.Fprintf(&s, "%-10s", "")
	for n := range tellings {
		fmt.Fprintf(&s, " | %14s", n)
	}
	for truth, counts := range a.counts {
		all := 0
		for _, n := range counts {
			all += n
		}
		fmt.Fprintf(&s, "\n%-6s %3d", fmt.Sprint(truthOf(truth)), all)
		for _, n := range counts {
			fmt.Fprintf(&s, " | %14d", n)
		}
	}
	fmt.Fprintf(&s, "\nof what asks, later than %v or not for sure: %d: %s", soon, len(a.late),
		strings.Join(a.late, ", "))
	return s.String()
}

func truthOf(i int) truth { return truth(i) }
