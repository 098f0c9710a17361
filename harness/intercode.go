package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// InterCode says in what boxes the tasks of an nl2bash file are done: the file itself does not.
type InterCode struct {
	Image string // of InterCode's, or one's own; or
	Build *Build
	// Answer is the file in the box into which the answer is to go. Default: /tmp/answer.
	Answer string
	// Roots are the directories whose content has to be as the gold command leaves it. Default: /testbed, /system, /workspace and /work where the image has
	// them, which InterCode's file systems lie in.
	Roots  []string
	Limits Limits
}

// ReadInterCode reads a file of InterCode's nl2bash tasks: a JSON list of objects with "query", what is to be done, and "gold", a command that does it. A task's
// ID is the file's name and its number, from 0, as "nl2bash_fs_1/17".
//
// A task has been done if the box's files are as gold leaves them, and the answer holds what gold prints, in whatever order the lines are. InterCode itself
// gives points for what is similar; here it is the same, or it is not. The errors are *ReadError.
func ReadInterCode(path string, o InterCode) ([]Task, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	if o.Answer == "" {
		o.Answer = "/tmp/answer"
	}
	if o.Roots == nil {
		o.Roots = []string{"/testbed", "/system", "/workspace", "/work"}
	}
	at := func(offset int64, err error) error {
		return &ReadError{path, 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n")), err}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if token, err := d.Token(); err != nil || token != json.Delim('[') {
		return nil, at(d.InputOffset(), errors.New("it has to be a JSON list of objects with query and gold"))
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	var tasks []Task
	for d.More() {
		begin := d.InputOffset()
		var item struct {
			Query string `json:"query"`
			Gold  string `json:"gold"`
		}
		err := d.Decode(&item)
		for begin < int64(len(data)) && strings.IndexByte(", \t\r\n", data[begin]) >= 0 {
			begin++
		}
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind):
			return nil, at(begin, wrong(kind.Field, "a JSON %s, where it has to be a %s", kind.Value, kind.Type))
		case err != nil:
			return nil, at(d.InputOffset(), err)
		case item.Query == "":
			return nil, at(begin, wrong("query", "it is missing"))
		case item.Gold == "":
			return nil, at(begin, wrong("gold", "it is missing"))
		}
		t := o.task(fmt.Sprintf("%s/%d", name, len(tasks)), item.Query, item.Gold)
		if err := t.Validate(); err != nil {
			return nil, at(begin, err)
		}
		tasks = append(tasks, t)
	}
	if _, err := d.Token(); err != nil {
		return nil, at(d.InputOffset(), err)
	}
	return tasks, nil
}

func (o *InterCode) task(id, query, gold string) Task {
	return Task{
		ID: id, Image: o.Image, Build: o.Build, Limits: o.Limits, Setup: ": >" + o.Answer,
		Instruction: query + "\n\nWrite what this prints, if anything, into the file " + o.Answer + ".",
		Check:       Check{Like: append([]string{o.Answer}, o.Roots...)},
		Solution:    Script{Command: "{ " + gold + "\n} >" + o.Answer},
	}
}
