package harness

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// A Change says how the results of a task in a run are, compared with those in an earlier run.
type Change string

// The changes of a task.
const (
	// Better and Worse mean that a larger or smaller share of the samples has passed or, if the
	// share is the same, that the mean of the score "points" is larger or smaller.
	Better Change = "better"
	Worse  Change = "worse"
	// Equal means that neither holds.
	Equal Change = "equal"
	// Changed means that the task, its files or its image have changed between the runs, so that
	// the results cannot be compared.
	Changed Change = "changed"
	// Unknown means that all results in one of the runs are Lost or Broken.
	Unknown Change = "unknown"
	// OnlyBefore and OnlyAfter mean that only that run has results of the task.
	OnlyBefore Change = "only before"
	OnlyAfter  Change = "only after"
)

// Changes are all changes, in the order in which they are shown.
var Changes = []Change{Worse, Better, Changed, Unknown, OnlyBefore, OnlyAfter, Equal}

// A Comparison says how the results of two runs differ: task by task, and in their means.
type Comparison struct {
	Before *Summary       `json:"-"`
	After  *Summary       `json:"-"`
	Tasks  []TaskChange   `json:"tasks"` // by Change as in Changes, then by ID
	Counts map[Change]int `json:"counts"`
	// Means are those of pass@k for each k that both runs know, of scores and counts, and of times
	// in seconds. Of each, only tasks that both runs know and that have not changed count.
	Means []MeanChange `json:"means"`
	// Chance is how probable it is that so many of the tasks that are better or worse, or more, are
	// on one side, if each was better or worse by chance alone (the sign test, on both sides). It
	// is 1 if there is no such task.
	Chance float64 `json:"chance"`
}

// A TaskChange compares the results of a task.
type TaskChange struct {
	Task   string       `json:"task"`
	Change Change       `json:"change"`
	Before *TaskResults `json:"before,omitempty"` // nil: that run has none
	After  *TaskResults `json:"after,omitempty"`
}

// TaskResults sum up the results of a task's samples in a run. Scores, Counts and Times are means
// of the samples that have them. Samples that are Lost or Broken do not count for the means.
type TaskResults struct {
	Statuses []Status           `json:"statuses"` // of the samples, in order
	Reason   string             `json:"reason,omitempty"`
	Scores   map[string]float64 `json:"scores,omitempty"`
	Counts   map[string]float64 `json:"counts,omitempty"`
	Times    map[string]float64 `json:"times,omitempty"` // in seconds
	// Page is the page of the first sample in the run's report: a path below its directory.
	Page string `json:"page"`

	passed, counted int
	digest, image   string
}

// A MeanChange compares a mean over tasks. It is paired: the error of Change comes from how much
// the differences of single tasks differ. So it is small where hard tasks are hard in both runs.
type MeanChange struct {
	Of     string `json:"of"`   // "pass", "score", "count" or "time"
	Name   string `json:"name"` // "pass@1", "points", "tokens", "agent"
	Before Rate   `json:"before"`
	After  Rate   `json:"after"`
	Change Rate   `json:"change"` // After less Before
}

// Compare compares the results of a run with those of an earlier one, such as of another agent at
// the same tasks. ReadResults returns the results in a directory.
func Compare(before, after *Summary) *Comparison {
	c := &Comparison{Before: before, After: after, Counts: map[Change]int{}}
	old, now := before.byTask(), after.byTask()
	ids := maps.Clone(old)
	maps.Copy(ids, now)
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		t := TaskChange{Task: id, Before: old[id], After: now[id]}
		t.Change = changeOf(t.Before, t.After)
		c.Counts[t.Change]++
		c.Tasks = append(c.Tasks, t)
	}
	slices.SortStableFunc(c.Tasks, func(a, b TaskChange) int {
		return slices.Index(Changes, a.Change) - slices.Index(Changes, b.Change)
	})
	c.Means = c.means()
	c.Chance = signTest(c.Counts[Better], c.Counts[Worse])
	return c
}

// byTask sums up the results of each task.
func (s *Summary) byTask() map[string]*TaskResults {
	tasks := map[string]*TaskResults{}
	seen := map[*TaskResults]map[string]float64{} // how many results have a number
	for _, r := range s.Results {
		t := tasks[r.Task]
		if t == nil {
			t = &TaskResults{Page: path.Join(r.Dir, pageFile), digest: r.Digest, image: r.Image,
				Scores: map[string]float64{}, Counts: map[string]float64{},
				Times: map[string]float64{}}
			tasks[r.Task], seen[t] = t, map[string]float64{}
		}
		t.Statuses = append(t.Statuses, r.Status)
		if t.Reason == "" && r.Status != Pass {
			t.Reason = r.Reason
		}
		if r.Status == Lost || r.Status == Broken {
			continue
		}
		t.counted++
		if r.Status == Pass {
			t.passed++
		}
		for of, values := range map[string][2]map[string]float64{"score": {t.Scores, r.Scores},
			"count": {t.Counts, r.Counts}, "time": {t.Times, r.times()}} {
			for name, value := range values[1] {
				seen[t][of+name]++
				values[0][name] += (value - values[0][name]) / seen[t][of+name]
			}
		}
	}
	return tasks
}

// times returns the times of a result that are not 0, by the names that people see.
func (r Result) times() map[string]float64 {
	times := map[string]float64{"box": r.Times.Box, "setup": r.Times.Setup, "agent": r.Times.Agent,
		"check": r.Times.Check, "in all": r.Seconds}
	maps.DeleteFunc(times, func(_ string, s float64) bool { return s == 0 })
	return times
}

// changeOf compares the results of a task.
func changeOf(before, after *TaskResults) Change {
	switch {
	case before == nil:
		return OnlyAfter
	case after == nil:
		return OnlyBefore
	case before.digest != after.digest,
		before.image != "" && after.image != "" && before.image != after.image:
		return Changed
	case before.counted == 0 || after.counted == 0:
		return Unknown
	}
	more := after.passed*before.counted - before.passed*after.counted
	if old, ok := before.Scores[PointsScore]; ok && more == 0 {
		if now, ok := after.Scores[PointsScore]; ok && math.Abs(now-old) > 1e-9 {
			more = 1
			if now < old {
				more = -1
			}
		}
	}
	switch {
	case more > 0:
		return Better
	case more < 0:
		return Worse
	}
	return Equal
}

// means returns the means of what both runs have.
func (c *Comparison) means() []MeanChange {
	var all []MeanChange
	for _, k := range slices.Compact(slices.Sorted(slices.Values([]int{1,
		min(c.Before.Samples, c.After.Samples)}))) {
		name := fmt.Sprintf("pass@%d", k)
		all = c.appendMean(all, "pass", name, func(t *TaskResults) (float64, bool) {
			return passAt(t.counted, t.passed, k), t.counted >= k && k > 0
		})
	}
	for _, of := range []struct {
		name string
		get  func(*TaskResults) map[string]float64
	}{
		{"score", func(t *TaskResults) map[string]float64 { return t.Scores }},
		{"count", func(t *TaskResults) map[string]float64 { return t.Counts }},
		{"time", func(t *TaskResults) map[string]float64 { return t.Times }},
	} {
		names := map[string]bool{}
		for _, t := range c.Tasks {
			if t.paired() {
				for name := range of.get(t.After) {
					names[name] = true
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			all = c.appendMean(all, of.name, name, func(t *TaskResults) (float64, bool) {
				value, ok := of.get(t)[name]
				return value, ok
			})
		}
	}
	return all
}

// paired reports whether the numbers of the runs can be compared.
func (t TaskChange) paired() bool {
	return t.Change == Better || t.Change == Worse || t.Change == Equal
}

// appendMean appends the mean of a value, if any task has it in both runs.
func (c *Comparison) appendMean(all []MeanChange, of, name string,
	value func(*TaskResults) (float64, bool)) []MeanChange {
	var before, after, change []float64
	for _, t := range c.Tasks {
		if !t.paired() {
			continue
		}
		old, had := value(t.Before)
		now, has := value(t.After)
		if had && has {
			before, after = append(before, old), append(after, now)
			change = append(change, now-old)
		}
	}
	if len(change) == 0 {
		return all
	}
	return append(all, MeanChange{Of: of, Name: name, Before: rateOf(before),
		After: rateOf(after), Change: rateOf(change)})
}

// signTest returns how probable at least such an imbalance is, if both sides are equally probable.
func signTest(a, b int) float64 {
	n, least := float64(a+b), float64(min(a, b))
	logFactorial := func(x float64) float64 {
		value, _ := math.Lgamma(x + 1)
		return value
	}
	var p float64
	for i := 0.0; i <= least; i++ {
		p += math.Exp(logFactorial(n) - logFactorial(i) - logFactorial(n-i) - n*math.Ln2)
	}
	return min(2*p, 1)
}

// statusesText returns the statuses of samples: "pass", or "2 pass, 1 fail".
func (t *TaskResults) statusesText() string {
	if t == nil {
		return ""
	}
	if len(t.Statuses) == 1 {
		return string(t.Statuses[0])
	}
	counts := map[Status]int{}
	for _, s := range t.Statuses {
		counts[s]++
	}
	return strings.TrimSpace(countsText(counts))
}
