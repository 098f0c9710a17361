package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"

	"github.com/sandshell/sandshell/internal/printable"
)

// A comparedReport is what the list of a report shows of a Comparison.
type comparedReport struct {
	Agent   string                  `json:"agent"`
	Page    string                  `json:"page,omitempty"` // of the earlier run's report
	Changes []Change                `json:"changes"`
	Counts  map[Change]int          `json:"counts"`
	Means   []MeanChange            `json:"means"`
	Chance  float64                 `json:"chance"`
	Tasks   map[string]comparedTask `json:"tasks"` // that the run has
	Gone    []comparedTask          `json:"gone"`  // that only the earlier run has
}

// A comparedTask is a task of an earlier run.
type comparedTask struct {
	Task   string `json:"task,omitempty"`
	Change Change `json:"change"`
	Status string `json:"status,omitempty"`
	Page   string `json:"page,omitempty"`
}

// readBefore returns the results of the run to compare with, or nil.
func (c *Config) readBefore() (*Summary, error) {
	if c.Before == "" {
		return nil, nil
	}
	before, err := os.Stat(c.Before)
	if err != nil {
		return nil, err
	}
	if dir, err := os.Stat(c.Dir); err == nil && os.SameFile(before, dir) {
		return nil, errors.New("it is Config.Dir: name the results of another run")
	}
	return ReadResults(c.Before)
}

// WriteReport puts the comparison into the report of c.After, which must have ended. The report's
// links to pages of c.Before hold as long as both directories stay where they are.
func (c *Comparison) WriteReport() error {
	dir := c.After.Dir
	if _, err := os.Stat(filepath.Join(dir, reportFile)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("harness: %s has no report: run the tasks into it", dir)
	}
	lock, err := lockPath(filepath.Join(dir, lockFile))
	if err != nil {
		return fmt.Errorf("harness: %s: %w", dir, err)
	}
	if err := errors.Join(writeCompared(dir, c.forReport()), lock.Close()); err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	return nil
}

// compareLocked writes report/compare.js, if there is a run to compare with.
func (r *report) compareLocked() error {
	if r.before == nil {
		return nil
	}
	ended := map[string]bool{}
	now := &Summary{Dir: r.dir}
	for _, row := range r.rows {
		ended[row.Task] = ended[row.Task] || !row.open()
		if !row.open() {
			now.Results = append(now.Results, row.Result)
			now.Samples = max(now.Samples, row.Sample)
		}
	}
	old := *r.before
	old.Results = nil
	for _, result := range r.before.Results {
		if has, ours := ended[result.Task]; has || !ours { // what has not ended is not compared
			old.Results = append(old.Results, result)
		}
	}
	return writeCompared(r.dir, Compare(&old, now).forReport())
}

// open reports whether the row has no result.
func (r reportRow) open() bool { return r.Status == statusRunning || r.Status == statusWaiting }

// writeCompared writes report/compare.js in a directory of results.
func writeCompared(dir string, c *comparedReport) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "report", "compare.js"),
		fmt.Appendf(nil, "compareRuns(%s);\n", text))
}

// forReport returns what the list of c.After shows.
func (c *Comparison) forReport() *comparedReport {
	all := &comparedReport{Agent: printable.Line(c.Before.Agent), Changes: Changes,
		Counts: c.Counts, Means: c.Means, Chance: c.Chance, Tasks: map[string]comparedTask{}}
	below, linked := relativeDir(c.After.Dir, c.Before.Dir)
	link := func(name string) string {
		if !linked {
			return ""
		}
		return (&url.URL{Path: path.Join(below, name)}).String()
	}
	all.Page = link(reportFile)
	for _, t := range c.Tasks {
		compared := comparedTask{Change: t.Change, Status: t.Before.statusesText()}
		if t.Before != nil {
			compared.Page = link(t.Before.Page)
		}
		if t.Change == OnlyBefore {
			compared.Task = t.Task
			all.Gone = append(all.Gone, compared)
		} else {
			all.Tasks[t.Task] = compared
		}
	}
	return all
}

// relativeDir returns the relative path from one directory to another, with slashes. ok is false if
// there is none, as between two drives.
func relativeDir(from, to string) (below string, ok bool) {
	from, err := filepath.Abs(from)
	if err != nil {
		return "", false
	}
	if to, err = filepath.Abs(to); err != nil {
		return "", false
	}
	below, err = filepath.Rel(from, to)
	return filepath.ToSlash(below), err == nil
}
