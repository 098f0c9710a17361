package harness

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Result says how a sample of a task ended. It is a line of results.jsonl.
type Result struct {
	Task   string   `json:"task"`
	Sample int      `json:"sample"` // from 1
	Tags   []string `json:"tags,omitempty"`
	// Digest changes when the task's fields, but Tags, or the files that it names change. Image is
	// the id of the task's image on the engine. It is empty if the task has a Build, which Digest
	// covers.
	Digest string `json:"digest"`
	Image  string `json:"image,omitempty"`
	Status Status `json:"status"`
	// Before is the status that the sample had, if this is its first result since the task, its
	// files or its image have changed.
	Before Status `json:"before,omitempty"`
	Reason string `json:"reason,omitempty"` // at most 600 bytes, safe to print
	// Scores and Counts are the numbers of the last attempt, by name. Scores say how good the agent
	// was, as the agent and Check.Points have it. Counts are what the agent has used, and
	// RefusedCount. The numbers are finite. There are at most 32 scores and 17 counts, and a name
	// has 1 to 64 bytes without control characters.
	Scores map[string]float64 `json:"scores,omitempty"`
	Counts map[string]float64 `json:"counts,omitempty"`
	// Files is how many files Task.Collect has brought into Dir/files. Their names and contents are
	// the box's.
	Files int `json:"files,omitempty"`
	// Attempts is 1, and one more for each time that the infrastructure failed.
	Attempts int       `json:"attempts"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"` // of all attempts
	Times    Times     `json:"times"`   // of the last attempt
	// Dir, Log and Recording are paths below the directory of results, with slashes. Dir is the
	// directory of this sample, tasks/ID for the first one and tasks/ID@N for the Nth. It holds the
	// log, the recording, which is empty if there is none, and the report's page.
	Dir       string `json:"dir"`
	Log       string `json:"log"`
	Recording string `json:"recording,omitempty"`
}

// The files in a directory of results.
const (
	resultsFile = "results.jsonl"
	runFile     = "run.json"
	lockFile    = "lock"
	reportFile  = "report.html"
)

// ErrInUse says that another program uses Config.Dir.
var ErrInUse = errors.New("another program is running tasks into this directory: wait for it, or " +
	"choose another")

// A results is a directory of results that this process has locked.
type results struct {
	dir  string
	id   string // of the run, in a label of its boxes
	lock io.Closer
	mu   sync.Mutex
	file *os.File
	done map[sampleID]Result
}

// A sampleID names a sample of a task.
type sampleID struct {
	task   string
	sample int
}

func (r Result) id() sampleID { return sampleID{r.Task, r.Sample} }

// dir returns Result.Dir.
func (id sampleID) dir() string { return "tasks/" + id.String() }

// String returns the task's ID for the first sample, and ID@N for the Nth.
func (id sampleID) String() string {
	if id.sample <= 1 {
		return id.task
	}
	return fmt.Sprintf("%s@%d", id.task, id.sample)
}

// openResults opens the directory, creates it if necessary, and reads the results of earlier runs.
func openResults(dir, agent string) (*results, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("Config.Dir: %s is a file: name a directory for the results", dir)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("Config.Dir: %w", err)
	}
	lock, err := lockPath(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	r := &results{dir: dir, lock: lock, done: map[sampleID]Result{}}
	if err = r.identify(agent); err == nil {
		err = r.read()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// identify checks that the results are those of the agent. In a new directory, it writes the
// agent's name and an id of the run.
func (r *results) identify(agent string) error {
	var run runID
	path := filepath.Join(r.dir, runFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		run.ID, run.Agent = rand.Text(), agent
		if data, err = json.Marshal(run); err != nil {
			return err
		}
		if err := writeWhole(path, append(data, '\n')); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if run, err = parseRun(r.dir, data); err != nil {
		return err
	}
	if run.Agent != agent {
		return fmt.Errorf("%s holds results of the agent %q, not of %q: choose another directory",
			r.dir, run.Agent, agent)
	}
	r.id = run.ID
	return os.Chmod(path, fileMode)
}

// writeWhole replaces a file atomically: even if the machine is killed, the file is the old one or
// the new one.
func writeWhole(path string, data []byte) error { return replaceBy(path, data, (*os.File).Sync) }

// replaceFile replaces a file atomically: even if the program is killed, the file is the old one or
// the new one.
func replaceFile(path string, data []byte) error {
	return replaceBy(path, data, func(*os.File) error { return nil })
}

func replaceBy(path string, data []byte, sync func(*os.File) error) error {
	f, err := createFile(path + ".part")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, sync(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// read reads the results. It drops a last line without its end, and the results whose Status is
// Lost, so that these tasks are run again.
func (r *results) read() error {
	path := filepath.Join(r.dir, resultsFile)
	var keep []byte
	size, err := parseResults(path, func(result Result, line []byte) {
		if result.Status != Lost {
			r.done[result.id()] = result
			keep = append(keep, line...)
		}
	})
	if err != nil {
		return err
	}
	if len(keep) < size {
		if err := writeWhole(path, keep); err != nil {
			return err
		}
	}
	r.file, err = openFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	return err
}

// add writes a result. When it returns, the line is on the disk.
func (r *results) add(result Result) error {
	line, err := json.Marshal(result)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if _, err = r.file.Write(append(bytes.TrimSpace(line), '\n')); err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		// The next result must not follow half a line.
		return errors.Join(fmt.Errorf("write a result: %w", err), r.file.Truncate(info.Size()))
	}
	r.done[result.id()] = result
	return nil
}

// drop removes the results that match.
func (r *results) drop(match func(Result) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := false
	for id, result := range r.done {
		if match(result) {
			found = true
			delete(r.done, id)
		}
	}
	if !found {
		return nil
	}
	path := filepath.Join(r.dir, resultsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var keep []byte
	for line := range bytes.Lines(data) {
		var result Result
		if err := json.Unmarshal(line, &result); err != nil {
			return err
		}
		if _, kept := r.done[result.id()]; kept {
			keep = append(keep, line...)
		}
	}
	if err := r.file.Close(); err != nil {
		return err
	}
	r.file = nil
	if err := writeWhole(path, keep); err != nil {
		return err
	}
	r.file, err = openFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	return err
}

// get returns the result of a sample, if it has one.
func (r *results) get(id sampleID) (Result, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, ok := r.done[id]
	return result, ok
}

func (r *results) close() error {
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	return errors.Join(err, r.lock.Close())
}
