package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/internal/specfile"
)

// InterCode says in which boxes the tasks of an nl2bash file run. The file itself does not say so.
type InterCode struct {
	// Image is the image of the boxes, one of InterCode's or another. If Build is not nil, the
	// image is built from it instead.
	Image string
	Build *Build
	// Answer is the file in the box for the answer. Default: /tmp/answer.
	Answer string
	// Roots are the directories whose content must be as the gold command leaves it. Default: the
	// whole file system without the directories that InterCode's images ignore
	// (docker/docker.gitignore), such as /usr and /home, and without /tmp, which agents write to.
	Roots  []string
	Limits Limits
}

// ignoredPaths are directories that Check.Like leaves out: those that InterCode's
// docker/docker.gitignore names, its git repository, and what the system or sandshell puts there.
var ignoredPaths = strings.Fields("/bin /boot /dev /etc /home /lib* /media /opt /proc /root /run " +
	"/sbin /srv /sys /usr /var /.dockerenv /.git /.gitignore /.sandshell /tmp")

// ReadInterCode reads a file of InterCode's nl2bash tasks (github.com/princeton-nlp/intercode,
// data/nl2bash). The file is a JSON list of objects. "query" is the instruction. "gold" is a
// command, or a list of commands, that does what it says. A task's ID is the file's name and the
// task's number from 0, such as "nl2bash_fs_1/17". Everything starts in /, and bash runs gold, as
// in InterCode (intercode/envs/bash/bash_env.py).
//
// A task passes if the box's files are as gold leaves them, and if the answer holds the lines that
// gold prints, in any order. InterCode itself gives points: a third each for the paths that git
// status names in both boxes, for the sums of new files, and for the similarity of the last
// command's output to gold's. Nobody passes a task whose gold prints something else each time, such
// as the time of day.
//
// If the file is wrong, the error is a *ReadError.
func ReadInterCode(path string, o InterCode) ([]Task, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	if o.Answer == "" {
		o.Answer = "/tmp/answer"
	}
	at := func(line int, err error) error { return &ReadError{path, line, err} }
	var items []struct {
		Line  int      `spec:",line"`
		Query string   `spec:"query"`
		Gold  []string `spec:"gold,list"` // a command, or a list of them
	}
	if err := specfile.JSON.DecodeKnown(data, &items); err != nil {
		return nil, at(decodeError(err))
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	var tasks []Task
	for _, item := range items {
		gold := strings.Join(item.Gold, "; ")
		switch {
		case item.Query == "":
			return nil, at(item.Line, fieldError("query", "it is missing"))
		case gold == "":
			return nil, at(item.Line, fieldError("gold", "it is missing"))
		}
		t := o.task(fmt.Sprintf("%s/%d", name, len(tasks)), item.Query, gold)
		if err := t.Validate(); err != nil {
			return nil, at(item.Line, err)
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

func (o *InterCode) task(id, query, gold string) Task {
	like, except := append([]string{o.Answer}, o.Roots...), []string(nil)
	if o.Roots == nil {
		like, except = []string{o.Answer, "/"}, ignoredPaths
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
