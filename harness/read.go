package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// A ReadError says why a file of tasks, or of results, cannot be read, and where.
type ReadError struct {
	File string
	Line int   // from 1; 0 if the error is about the whole file
	Err  error // often a *FieldError
}

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

// The JSON objects of ReadJSONL. Sizes are written as for Docker ("512m"), times as in Go ("90s").
type (
	taskLine struct {
		ID          string     `json:"id"`
		Image       string     `json:"image"`
		Build       *buildLine `json:"build"`
		Dir         string     `json:"dir"`
		User        string     `json:"user"`
		AgentUser   string     `json:"agent_user"`
		Env         []string   `json:"env"`
		Files       []fileLine `json:"files"`
		Setup       string     `json:"setup"`
		Instruction string     `json:"instruction"`
		Limits      struct {
			Time    string  `json:"time"`
			Setup   string  `json:"setup"`
			Memory  string  `json:"memory"`
			PIDs    int64   `json:"pids"`
			CPUs    float64 `json:"cpus"`
			Network string  `json:"network"`
		} `json:"limits"`
		Check struct {
			scriptLine
			Time   string   `json:"time"`
			Like   []string `json:"like"`
			Except []string `json:"except"`
			Fresh  []string `json:"fresh"`
		} `json:"check"`
		Solution scriptLine `json:"solution"`
	}
	buildLine struct {
		Dir        string `json:"dir"`
		Dockerfile string `json:"dockerfile"`
	}
	scriptLine struct {
		Command string     `json:"command"`
		Files   []fileLine `json:"files"`
		Env     []string   `json:"env"`
	}
	fileLine struct {
		To   string `json:"to"`
		From string `json:"from"`
		Text string `json:"text"`
		Mode string `json:"mode"`
	}
)

// ReadJSONL reads a file that has a task in each line: a JSON object with the fields of Task in
// lower case. It skips empty lines and lines that begin with #. "from" and "build.dir" are relative
// to the file's directory. If a line is wrong, the error is a *ReadError.
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
	if err := distinct(tasks); err != nil {
		return nil, &ReadError{path, 0, err}
	}
	return tasks, nil
}

// parseTask parses one line of a file in dir.
func parseTask(line []byte, dir string) (Task, error) {
	var l taskLine
	if err := decodeStrictly(line, &l); err != nil {
		return Task{}, err
	}
	p := parser{dir: dir}
	t := Task{
		ID: l.ID, Image: l.Image, Dir: l.Dir, User: l.User, AgentUser: l.AgentUser, Env: l.Env,
		Files: p.files("files", l.Files), Setup: l.Setup, Instruction: l.Instruction,
		Limits: Limits{
			Time:   p.time("limits.time", l.Limits.Time),
			Setup:  p.time("limits.setup", l.Limits.Setup),
			Memory: p.size("limits.memory", l.Limits.Memory),
			PIDs:   l.Limits.PIDs, CPUs: l.Limits.CPUs, Network: l.Limits.Network,
		},
		Check: Check{
			Script: Script{l.Check.Command, p.files("check.files", l.Check.Files), l.Check.Env},
			Time:   p.time("check.time", l.Check.Time), Like: l.Check.Like, Except: l.Check.Except,
			Fresh: l.Check.Fresh,
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

// decodeStrictly decodes one JSON value. It refuses unknown fields, because a misspelt field might
// be a limit that then does not hold.
func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return wrongKind(kind.Field, kind)
	case err == io.ErrUnexpectedEOF:
		return errors.New("the object does not end: write each task in one line")
	case err != nil && strings.HasPrefix(err.Error(), "json: unknown field "):
		name, _ := strconv.Unquote(strings.TrimPrefix(err.Error(), "json: unknown field "))
		return wrong(name, "there is no such field")
	case err != nil:
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is text after the object: write one object in each line")
	}
	return nil
}

// wrongKind returns an error that says that a value is of the wrong kind, in JSON's words.
func wrongKind(field string, kind *json.UnmarshalTypeError) error {
	value, _, _ := strings.Cut(kind.Value, " ")          // "number 1.5"
	field = strings.Replace(field, ".scriptLine", "", 1) // it is embedded
	if field == "" {
		return fmt.Errorf("a JSON %s: write %s", value, kindText(kind.Type))
	}
	return wrong(field, "a JSON %s: write %s", value, kindText(kind.Type))
}

// kindText says what a file holds for a value of a type.
func kindText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindText(t.Elem())
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a string"
}

// A parser parses fields, and keeps its first error.
type parser struct {
	dir string
	err error
}

func (p *parser) fail(field string, err error) {
	if p.err == nil {
		p.err = &FieldError{field, err}
	}
}

func (p *parser) time(field, s string) time.Duration {
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		p.fail(field, fmt.Errorf("%q is no time: write \"90s\", \"5m\"", s))
	}
	return d
}

func (p *parser) size(field, s string) int64 {
	if s == "" {
		return 0
	}
	n, err := units.RAMInBytes(s)
	if err != nil {
		p.fail(field, fmt.Errorf("%q is no size: write \"512m\", \"2g\"", s))
	}
	return n
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
		f := File{To: l.To, Text: l.Text}
		if l.From != "" {
			f.From = p.path(l.From)
			if _, err := os.Stat(f.From); err != nil {
				p.fail(at+".from", err)
			}
		}
		if l.Mode != "" {
			mode, err := strconv.ParseUint(l.Mode, 8, 32)
			if err != nil || mode > 0o7777 {
				p.fail(at+".mode", fmt.Errorf("%q are no permissions: write \"0755\"", l.Mode))
			}
			f.Mode = fs.FileMode(mode)
		}
		files = append(files, f)
	}
	return files
}

// distinct returns an error if two tasks have the same ID.
func distinct(tasks []Task) error {
	seen := map[string]bool{}
	for _, t := range tasks {
		// In some file systems, names that differ only in case are the same file.
		if id := strings.ToLower(t.ID); seen[id] {
			return wrong("id", "there are two tasks %q", t.ID)
		} else {
			seen[id] = true
		}
	}
	return nil
}
