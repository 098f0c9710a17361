package harness

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/printable"
)

// The report is report.html, which shows the list of tasks, and index.html in the directory of each
// result. The list loads report/data.js, which is written anew whenever a task begins or ends: so
// an open page follows the run, and a program that is killed leaves a report that is right. It also
// loads report/compare.js, which compares with an earlier run.
//
// Whatever comes out of a box is text for html/template or for textContent, never HTML. Beyond
// that, a page runs only scripts that have its nonce.

//go:embed report
var reportFiles embed.FS

var reportTemplates = template.Must(template.New("report").Funcs(template.FuncMap{
	"text": printable.Text,
	"add":  func(a, b int) int { return a + b },
}).ParseFS(reportFiles, "report/*.html"))

// asset returns a file of the report that is the same for every run.
func asset(name string) ([]byte, error) { return reportFiles.ReadFile(path.Join("report", name)) }

// The statuses of tasks that have no result. They are only in the report.
const (
	statusRunning Status = "running"
	statusWaiting Status = "waiting"
)

// A report is written while its run goes on.
type report struct {
	dir, agent string
	nonce      string
	before     *Summary // the run to compare with, or nil

	mu    sync.Mutex
	rows  []reportRow
	index map[string]int // of rows, by key
	err   error          // the first; the run goes on without it
}

// A reportRow is a line of the list.
type reportRow struct {
	Result
	Page string `json:"page,omitempty"` // the path of the task's page; empty if it has none
	made []byte // the row's JSON
}

// newReport writes the report of a run that begins. rows are all tasks, in order. before is an
// earlier run to compare with, or nil.
func newReport(dir, agent string, rows []reportRow, before *Summary) *report {
	r := &report{dir: dir, agent: printable.Line(agent), nonce: rand.Text(), before: before,
		rows: rows, index: map[string]int{}}
	for i := range rows {
		row := &rows[i]
		r.index[row.Dir] = i
		if row.Status == "" {
			row.Status = statusWaiting
		} else {
			row.Page = path.Join(row.Dir, pageFile)
		}
	}
	r.err = r.writeAssets()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(r.compareLocked())
	r.writeLocked(nil)
	return r
}

// reportRows returns the samples that the report lists, with the results that they have.
func (r *runner) reportRows() []reportRow {
	var rows []reportRow
	for _, t := range r.cfg.Tasks {
		for n := range r.cfg.Samples {
			id := sampleID{t.ID, n + 1}
			result, ok := r.results.get(id)
			if !ok {
				result = Result{Task: id.task, Sample: id.sample, Dir: id.dir()}
			}
			result.Tags = t.Tags // they may have changed
			rows = append(rows, reportRow{Result: result})
		}
	}
	return rows
}

// pageFile is a task's page in the directory of its result.
const pageFile = "index.html"

// writeAssets writes what does not change during a run.
func (r *report) writeAssets() error {
	if err := os.MkdirAll(filepath.Join(r.dir, "report"), dirMode); err != nil {
		return err
	}
	for _, name := range []string{"style.css", "numbers.js", "report.js", "task.js"} {
		data, err := asset(name)
		if err == nil {
			err = replaceFile(filepath.Join(r.dir, "report", name), data)
		}
		if err != nil {
			return err
		}
	}
	if err := writeCompared(r.dir, nil); err != nil {
		return err
	}
	return writePage(filepath.Join(r.dir, reportFile), "report.html", r.page())
}

// A page is what each page needs.
type page struct{ Agent, Nonce string }

func (r *report) page() page { return page{r.agent, r.nonce} }

// taskBegan says that work on a task begins. begun has its Task, Sample, Tags, Dir and Started.
func (r *report) taskBegan(task *Task, begun Result) {
	begun.Status = ""
	err := r.writeTask(task, begun)
	begun.Status = statusRunning
	r.set(begun, err)
}

// taskEnding writes the page of a result before the result is kept. So a result has its page, even
// if the program is killed.
func (r *report) taskEnding(task *Task, result Result) {
	err := r.writeTask(task, result)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(err)
}

// taskEnded says that a result is kept.
func (r *report) taskEnded(result Result) {
	r.set(result, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(r.compareLocked())
}

// set replaces the row of a result.
func (r *report) set(result Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(err)
	if i, ok := r.index[result.Dir]; ok {
		r.rows[i] = reportRow{Result: result, Page: path.Join(result.Dir, pageFile)}
		r.writeLocked(nil)
	}
}

// end says that the run has ended after d, and returns the first error of the report.
func (r *report) end(d time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.rows { // ctx has ended the run
		if r.rows[i].Status == statusRunning {
			r.rows[i].Status, r.rows[i].made = statusWaiting, nil
		}
	}
	r.writeLocked(&d)
	return r.err
}

func (r *report) failLocked(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("report: %w", err)
	}
}

// writeLocked writes report/data.js. d is what the run took, or nil if it has not ended.
func (r *report) writeLocked(d *time.Duration) {
	head := struct {
		Agent    string    `json:"agent"`
		Samples  int       `json:"samples"`
		Statuses []Status  `json:"statuses"`
		Written  time.Time `json:"written"`
		Ended    bool      `json:"ended"`
		Seconds  float64   `json:"seconds"`
	}{Agent: r.agent, Samples: 1, Written: time.Now().UTC(), Ended: d != nil,
		Statuses: slices.Concat(Statuses, []Status{statusRunning, statusWaiting})}
	for _, row := range r.rows {
		head.Samples = max(head.Samples, row.Sample)
	}
	if d != nil {
		head.Seconds = d.Seconds()
	}
	text, err := json.Marshal(head)
	var b bytes.Buffer
	b.WriteString("report(")
	b.Write(bytes.TrimSuffix(text, []byte("}")))
	b.WriteString(`,"tasks":[`)
	for i := range r.rows {
		row := &r.rows[i]
		if row.made == nil && err == nil {
			row.made, err = json.Marshal(row)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(row.made)
	}
	b.WriteString("]});\n")
	if err == nil {
		err = replaceFile(filepath.Join(r.dir, "report", "data.js"), b.Bytes())
	}
	r.failLocked(err)
}

// writePage writes a page that a template makes.
func writePage(file, name string, data any) error {
	var b bytes.Buffer
	if err := reportTemplates.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	return replaceFile(file, b.Bytes())
}

// rootOf returns the relative path from a directory below the results to the results.
func rootOf(dir string) string { return strings.Repeat("../", 1+strings.Count(dir, "/")) }
