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
	"slices"
	"sync"
	"time"
)

// A Result says how a task ended. It is a line of results.jsonl.
type Result struct {
	Task string `json:"task"`
	// Digest changes when the task's fields change, or the files that it names. Image is the id of
	// the task's image on the engine. It is empty for a Build, which Digest covers.
	Digest string `json:"digest"`
	Image  string `json:"image,omitempty"`
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"` // at most 600 bytes, safe to print
	// Attempts is 1, and one more for each time that the infrastructure failed.
	Attempts int       `json:"attempts"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"` // of all attempts
	Times    Times     `json:"times"`   // of the last attempt
	// Log and Recording are paths below the directory of results. Recording is empty if there is
	// none.
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

// ErrInUse says that another program uses the directory of results.
var ErrInUse = errors.New("another program is running tasks into this directory: wait for it, or " +
	"choose another")

// A results is a directory of results that this process has locked.
type results struct {
	dir  string
	id   string // of the run, in a label of its boxes
	lock io.Closer
	mu   sync.Mutex
	file *os.File
	done map[string]Result
}

// openResults opens the directory, creates it if necessary, and reads the results of earlier runs.
func openResults(dir, agent string) (*results, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	lock, err := lockPath(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	r := &results{dir: dir, lock: lock, done: map[string]Result{}}
	if err = r.identify(agent); err == nil {
		err = r.read()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// identify checks that the results are the agent's. In a new directory, it writes whose they are.
func (r *results) identify(agent string) error {
	var run struct {
		ID    string `json:"id"`
		Agent string `json:"agent"`
	}
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
	if err := json.Unmarshal(data, &run); err != nil || run.ID == "" {
		return &ReadError{path, 1,
			errors.New("sandshell did not write it: choose another directory")}
	}
	if run.Agent != agent {
		return fmt.Errorf("%s holds results of the agent %q, not of %q: choose another directory",
			r.dir, run.Agent, agent)
	}
	r.id = run.ID
	return os.Chmod(path, fileMode) // an older version has let others read it
}

// writeWhole writes a file, as a whole or not at all, whatever ends the program.
func writeWhole(path string, data []byte) error {
	f, err := createFile(path + ".part")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// read reads the results. It drops half a line at the end, and the results of tasks that the
// infrastructure has lost: these tasks are run again.
func (r *results) read() error {
	path := filepath.Join(r.dir, resultsFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var keep []byte
	n := 0
	for line := range bytes.Lines(data) {
		if n++; line[len(line)-1] != '\n' {
			break
		}
		var result Result
		if err := json.Unmarshal(line, &result); err != nil {
			return &ReadError{path, n, fmt.Errorf("it is no result: %w; remove the line, and its "+
				"task is run again", err)}
		}
		if _, twice := r.done[result.Task]; twice {
			return &ReadError{path, n, wrong("task", "a second result of %q: remove one of them",
				result.Task)}
		}
		if result.Status != Lost {
			r.done[result.Task] = result
			keep = append(keep, line...)
		}
	}
	if len(keep) < len(data) {
		if err := writeWhole(path, keep); err != nil {
			return err
		}
	}
	r.file, err = openFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	return err
}

// add writes a result. Once it returns, the line survives the end of the program or the machine.
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
		// Half a line would spoil the next.
		return errors.Join(fmt.Errorf("write a result: %w", err), r.file.Truncate(info.Size()))
	}
	r.done[result.Task] = result
	return nil
}

// drop removes the results of tasks that are to be run again.
func (r *results) drop(tasks []string) error {
	if len(tasks) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
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
		if !slices.Contains(tasks, result.Task) {
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
	for _, task := range tasks {
		delete(r.done, task)
	}
	r.file, err = openFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	return err
}

// of returns the task's result, if it has one.
func (r *results) of(task string) (Result, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, ok := r.done[task]
	return result, ok
}

func (r *results) close() error {
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	return errors.Join(err, r.lock.Close())
}
