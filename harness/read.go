package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/specfile"
)

// A ReadError says why a file of tasks, or of results, cannot be read, and where.
type ReadError struct {
	File string
	Line int   // from 1; 0 if the error is about the whole file
	Err  error // often a *FieldError
}

// Error returns the file, the line if there is one, and what is wrong.
func (e *ReadError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns what is wrong.
func (e *ReadError) Unwrap() error { return e.Err }

// Read reads the tasks of a file (see ReadJSONL), or of a directory that has tasks in Harbor's form
// at any depth (see ReadHarbor).
func Read(path string) ([]Task, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("harness: %w", err)
	case info.IsDir():
		return ReadHarbor(path)
	}
	return ReadJSONL(path)
}

// The JSON objects of ReadJSONL.
type (
	taskLine struct {
		ID          string     `spec:"id"`
		Image       string     `spec:"image"`
		Build       *buildLine `spec:"build"`
		Dir         string     `spec:"dir"`
		User        string     `spec:"user,id"`
		AgentUser   string     `spec:"agent_user,id"`
		Env         []string   `spec:"env"`
		Files       []fileLine `spec:"files"`
		Setup       string     `spec:"setup"`
		Tags        []string   `spec:"tags"`
		Collect     []string   `spec:"collect"`
		Instruction string     `spec:"instruction"`
		Limits      struct {
			Time    time.Duration `spec:"time"`
			Setup   time.Duration `spec:"setup"`
			Memory  int64         `spec:"memory,size"`
			PIDs    int64         `spec:"pids"`
			CPUs    float64       `spec:"cpus"`
			Network string        `spec:"network"`
			Egress  []string      `spec:"egress"`
		} `spec:"limits"`
		Check struct {
			scriptLine
			Time   time.Duration `spec:"time"`
			Like   []string      `spec:"like"`
			Except []string      `spec:"except"`
			Fresh  []string      `spec:"fresh"`
			Points []string      `spec:"points"`
			Pass   float64       `spec:"pass"`
		} `spec:"check"`
		Solution scriptLine `spec:"solution"`
	}
	buildLine struct {
		Dir        string `spec:"dir"`
		Dockerfile string `spec:"dockerfile"`
	}
	scriptLine struct {
		Command string     `spec:"command"`
		Files   []fileLine `spec:"files"`
		Env     []string   `spec:"env"`
	}
	fileLine struct {
		To   string      `spec:"to"`
		From string      `spec:"from"`
		Text string      `spec:"text"`
		Mode fs.FileMode `spec:"mode,mode"`
	}
)

// ReadJSONL reads a file that has a task in each line: a JSON object with the fields of Task in
// lower case. Sizes are written in bytes or as "512m", times as "90s", permissions as "0755". It
// skips empty lines and lines that begin with #. "from" and "build.dir" are relative to the file's
// directory. If a line is wrong, the error is a *ReadError.
func ReadJSONL(path string) ([]Task, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	var tasks []Task
	for i, line := range bytes.Split(data, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		task, err := parseTask(line, filepath.Dir(path))
		if err != nil {
			return nil, &ReadError{path, i + 1, err}
		}
		tasks = append(tasks, task)
	}
	if err := checkDistinct(tasks); err != nil {
		return nil, &ReadError{path, 0, err}
	}
	return tasks, nil
}

// parseTask parses one line of a file in dir.
func parseTask(line []byte, dir string) (Task, error) {
	var l taskLine
	if err := specfile.JSON.DecodeTyped(line, &l); err != nil {
		_, err = decodeError(err)
		if !json.Valid(line) {
			err = fmt.Errorf("%w: write each task as one object in one line", err)
		}
		return Task{}, err
	}
	p := parser{dir: dir}
	t := Task{
		ID: l.ID, Image: l.Image, Dir: l.Dir, User: l.User, AgentUser: l.AgentUser, Env: l.Env,
		Files: p.files("files", l.Files), Setup: l.Setup, Tags: l.Tags,
		Instruction: l.Instruction, Collect: l.Collect,
		Limits: Limits{Time: l.Limits.Time, Setup: l.Limits.Setup, Memory: l.Limits.Memory,
			PIDs: l.Limits.PIDs, CPUs: l.Limits.CPUs, Network: l.Limits.Network,
			Egress: l.Limits.Egress},
		Check: Check{
			Script: Script{l.Check.Command, p.files("check.files", l.Check.Files), l.Check.Env},
			Time:   l.Check.Time, Like: l.Check.Like, Except: l.Check.Except,
			Fresh: l.Check.Fresh, Points: l.Check.Points, Pass: l.Check.Pass,
		},
		Solution: Script{l.Solution.Command, p.files("solution.files", l.Solution.Files),
			l.Solution.Env},
	}
	if l.Build != nil {
		t.Build = &Build{Dir: p.path(l.Build.Dir), Dockerfile: l.Build.Dockerfile}
	}
	if p.err != nil {
		return Task{}, p.err
	}
	return t, t.Validate()
}

// decodeError returns the line of an error of specfile's, and what is wrong: a *FieldError if a key
// is.
func decodeError(err error) (line int, wrong error) {
	var at *specfile.Error
	if !errors.As(err, &at) {
		return 0, err
	}
	if at.Key == "" {
		return at.Line, errors.New(at.Reason)
	}
	return at.Line, fieldError(at.Key, "%s", at.Reason)
}

// A parser turns lines into a Task's fields, and keeps its first error.
type parser struct {
	dir string
	err error
}

// path makes a path of this machine, which is relative to the file's directory, absolute.
func (p *parser) path(s string) string {
	if filepath.IsAbs(s) {
		return s
	}
	return filepath.Join(p.dir, s)
}

func (p *parser) files(field string, lines []fileLine) []File {
	var files []File
	for i, l := range lines {
		at := fmt.Sprintf("%s[%d]", field, i)
		f := File{To: l.To, Text: l.Text, Mode: l.Mode}
		if l.From != "" {
			f.From = p.path(l.From)
			if _, err := os.Stat(f.From); err != nil && p.err == nil {
				p.err = &FieldError{at + ".from", err}
			}
		}
		files = append(files, f)
	}
	return files
}

// checkDistinct returns a *FieldError if two tasks have the same ID, or if one task's directory of
// results would be in another's.
func checkDistinct(tasks []Task) error {
	seen := map[string]bool{}
	for _, t := range tasks {
		// In some file systems, names that differ only in case are the same file.
		if id := strings.ToLower(t.ID); seen[id] {
			return fieldError("id", "two tasks have the ID %q: rename one", t.ID)
		} else {
			seen[id] = true
		}
	}
	for _, t := range tasks {
		above := path.Dir(t.ID)
		for ; above != "."; above = path.Dir(above) {
			if seen[strings.ToLower(above)] {
				return fieldError("id", "%q: its results would be among those of task %q: "+
					"rename one", t.ID, above)
			}
		}
	}
	return nil
}
