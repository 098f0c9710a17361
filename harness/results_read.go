package harness

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ReadResults returns the results in a directory that Run has written or is writing. Summary.Tasks
// and Samples are those of which there are results. The results are in the order of the tasks'
// IDs.
func ReadResults(dir string) (*Summary, error) {
	data, err := os.ReadFile(filepath.Join(dir, runFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s holds no results (%s: %w): name the directory that an evaluation "+
			"wrote", dir, runFile, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	run, err := parseRun(dir, data)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	s := &Summary{Agent: run.Agent, Dir: dir, Counts: map[Status]int{}}
	tasks := map[string]bool{}
	_, err = parseResults(filepath.Join(dir, resultsFile), func(r Result, _ []byte) {
		s.Results = append(s.Results, r)
		s.Counts[r.Status]++
		s.Samples = max(s.Samples, r.Sample)
		tasks[r.Task] = true
	})
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	s.Tasks = len(tasks)
	slices.SortFunc(s.Results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), a.Sample-b.Sample)
	})
	return s, nil
}

// parseResults calls each for the lines of results.jsonl, and returns the file's size. It leaves
// out a last line without its end. If the file does not exist, its size is 0.
func parseResults(path string, each func(r Result, line []byte)) (size int, err error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	seen := map[sampleID]bool{}
	n := 0
	for line := range bytes.Lines(data) {
		if n++; line[len(line)-1] != '\n' {
			break
		}
		var result Result
		if err := json.Unmarshal(line, &result); err != nil {
			return 0, &ReadError{path, n, fmt.Errorf("it is no result: %w; remove the "+
				"line, and its task is run again", err)}
		}
		if seen[result.id()] {
			return 0, &ReadError{path, n, fieldError("task",
				"a second result of %q: remove one of them", result.id())}
		}
		seen[result.id()] = true
		each(result, line)
	}
	return len(data), nil
}

// A runID is what run.json holds.
type runID struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
}

func parseRun(dir string, data []byte) (run runID, err error) {
	if err := json.Unmarshal(data, &run); err != nil || run.ID == "" {
		return run, &ReadError{filepath.Join(dir, runFile), 1,
			errors.New("sandshell did not write it: choose another directory")}
	}
	return run, nil
}
