package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
)

// InterCode says in which boxes the tasks of an nl2bash file run. The file itself does not say it.
type InterCode struct {
	// Image is an image of InterCode's, or another. If Build is not nil, the image is built from it
	// instead.
	Image string
	Build *Build
	// Answer is the file in the box for the answer. Default: /tmp/answer.
	Answer string
	// Roots are the directories whose content must be as the gold command leaves it. Default: the
	// whole file system without the directories that InterCode's images ignore
	// (docker/docker.gitignore), as /usr and /home, and without /tmp, which agents write to.
	Roots  []string
	Limits Limits
}

// ignored are the parts of a file system of InterCode's that its docker/docker.gitignore names, its
// repository, and what is not a part.
var ignored = strings.Fields("/bin /boot /dev /etc /home /lib* /media /opt /proc /root /run " +
	"/sbin /srv /sys /usr /var /.dockerenv /.git /.gitignore /.sandshell /tmp")

// ReadInterCode reads a file of InterCode's nl2bash tasks (github.com/princeton-nlp/intercode,
// data/nl2bash): a JSON list of objects with "query", the instruction, and "gold", a command that
// does it, or a list of commands. A task's ID is the file's name and the task's number, from 0, as
// "nl2bash_fs_1/17". Everything starts in /, and bash runs gold, as in InterCode
// (intercode/envs/bash/bash_env.py).
//
// A task passes if the box's files are as gold leaves them, and the answer holds the lines that
// gold prints, in any order. InterCode itself gives points: a third each for the paths that git
// status names in both boxes, for the sums of new files, and for the similarity of the last
// command's output to gold's. Some gold commands print something else each time, as times. If the
// file is wrong, the error is a *ReadError.
func ReadInterCode(path string, o InterCode) ([]Task, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	if o.Answer == "" {
		o.Answer = "/tmp/answer"
	}
	at := func(offset int64, err error) error {
		return &ReadError{path, 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n")),
			err}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if token, err := d.Token(); err != nil || token != json.Delim('[') {
		return nil, at(d.InputOffset(), errors.New("it has to be a JSON list of objects with "+
			"query and gold"))
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	var tasks []Task
	for d.More() {
		begin := d.InputOffset()
		var item struct {
			Query string `json:"query"`
			Gold  gold   `json:"gold"`
		}
		err := d.Decode(&item)
		for begin < int64(len(data)) && strings.IndexByte(", \t\r\n", data[begin]) >= 0 {
			begin++
		}
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind):
			return nil, at(begin, wrongKind(kind.Field, kind))
		case errors.Is(err, errGold):
			return nil, at(begin, wrong("gold", "%w", err))
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil, at(int64(len(data)), errors.New("the list has no end"))
		case err != nil:
			return nil, at(d.InputOffset(), err)
		case item.Query == "":
			return nil, at(begin, wrong("query", "it is missing"))
		case item.Gold == "":
			return nil, at(begin, wrong("gold", "it is missing"))
		}
		t := o.task(fmt.Sprintf("%s/%d", name, len(tasks)), item.Query, string(item.Gold))
		if err := t.Validate(); err != nil {
			return nil, at(begin, err)
		}
		tasks = append(tasks, t)
	}
	if _, err := d.Token(); err != nil { // the list's "]"
		return nil, at(int64(len(data)), errors.New("the list has no end"))
	}
	return tasks, nil
}

// gold is a command, or a list of them.
type gold string

func (g *gold) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		*g = gold(strings.Join(list, "; "))
		return nil
	}
	if json.Unmarshal(data, (*string)(g)) != nil {
		return errGold
	}
	return nil
}

var errGold = errors.New("it has to be a command, or a list of commands: strings")

func (o *InterCode) task(id, query, gold string) Task {
	like, except := append([]string{o.Answer}, o.Roots...), []string(nil)
	if o.Roots == nil {
		like, except = []string{o.Answer, "/"}, ignored
	}
	return Task{
		ID: id, Image: o.Image, Build: o.Build, Dir: "/", Limits: o.Limits, Setup: ": >" + o.Answer,
		Instruction: query + "\n\nWrite what this prints, if anything, into the file " + o.Answer +
			".",
		Check: Check{Like: like, Except: except},
		Solution: Script{Command: `exec "$(command -v bash || echo sh)" -c ` +
			shellquote.Quote(gold) + " >" + o.Answer},
	}
}
