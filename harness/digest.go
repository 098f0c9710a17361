package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/sandshell/sandshell/sshbox"
)

// digest returns a hash of the task's fields and of the content of the files that it names. It does
// not depend on where on this machine the files are, nor on the Config.
func (t Task) digest() (string, error) {
	sum := sha256.New()
	for _, files := range []*[]File{&t.Files, &t.Check.Files, &t.Solution.Files} {
		*files = slices.Clone(*files)
		for i, f := range *files {
			if err := digestTree(sum, f.From); err != nil {
				return "", err
			}
			(*files)[i].From = ""
		}
	}
	if t.Build != nil {
		if err := digestTree(sum, t.Build.Dir); err != nil {
			return "", err
		}
		t.Build = &Build{Dockerfile: t.Build.Dockerfile}
	}
	if err := json.NewEncoder(sum).Encode(t); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]), nil
}

// digestTree adds the names, modes and contents of what is at root; "" is nothing.
func digestTree(sum io.Writer, root string) error {
	if root == "" {
		return nil
	}
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %v %d\n", filepath.ToSlash(below), info.Mode(), info.Size())
		switch {
		case info.Mode().IsRegular():
			return digestFile(sum, path)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			fmt.Fprintf(sum, "%q\n", to)
			return err
		}
		return nil
	})
}

func digestFile(sum io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(sum, f)
	return err
}

// digests sets r.digest and r.imageID for all tasks.
func (r *runner) digests(ctx context.Context, tasks []Task) error {
	r.digest, r.imageID = map[string]string{}, map[string]string{}
	engine := sshbox.Engine{Docker: r.cfg.Box.Docker, Logger: r.cfg.Box.Logger}
	images := map[string]string{}
	for _, t := range tasks {
		digest, err := t.digest()
		if err != nil {
			return fmt.Errorf("task %q: %w", t.ID, err)
		}
		r.digest[t.ID] = digest
		if t.Image == "" {
			continue
		}
		id, known := images[t.Image]
		if !known {
			id, err = engine.ImageID(ctx, t.Image)
			if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsInvalidArgument(err) {
				return err
			}
			images[t.Image] = id
		}
		r.imageID[t.ID] = id
	}
	return nil
}

// changed says what has changed since the task got its result. It is empty if nothing has.
func (r *runner) changed(result Result) string {
	what, now := "", r.imageID[result.Task]
	switch {
	case result.Digest != r.digest[result.Task]:
		what = "task " + result.Task
	case result.Image != "" && now != "" && result.Image != now:
		what = "the image of task " + result.Task
	default:
		return ""
	}
	return fmt.Sprintf("%s has changed since its result, %s", what, result.Status)
}

// Changed, in Config.Again, stands for the tasks that have changed since they got their result.
const Changed = "changed"

// dropAgain drops the results that Config.Again names. If a result is left of a task that has
// changed since, the error is ErrChanged.
func (r *runner) dropAgain() error {
	var drop, changed []string
	for _, t := range r.cfg.Tasks {
		result, ok := r.results.of(t.ID)
		if !ok {
			continue
		}
		what := r.changed(result)
		switch {
		case slices.Contains(r.cfg.Again, string(result.Status)),
			slices.Contains(r.cfg.Again, t.ID),
			what != "" && slices.Contains(r.cfg.Again, Changed):
			drop = append(drop, t.ID)
		case what != "":
			changed = append(changed, what)
		}
	}
	if len(changed) > 0 {
		const shown = 5
		more := ""
		if n := len(changed) - shown; n > 0 {
			changed, more = changed[:shown], fmt.Sprintf("\nand %d more", n)
		}
		return fmt.Errorf("%w:\n%s%s", ErrChanged, strings.Join(changed, "\n"), more)
	}
	return r.results.drop(drop)
}

// ErrChanged says that tasks have changed since they got the results in the directory of results.
var ErrChanged = errors.New(
	"tasks have changed since their results: run them again (Config.Again " +
		"with Changed), or choose another directory")

// checkAgain returns an error if Config.Again has what is neither a status nor a task.
func checkAgain(again []string, tasks []Task) error {
	for _, a := range again {
		known := a == Changed || slices.Contains(Statuses, Status(a)) ||
			slices.ContainsFunc(tasks, func(t Task) bool { return t.ID == a })
		if !known {
			return fmt.Errorf("Config.Again: %q is neither a task nor a status: "+
				"there are %s, and %s", a, statusesText(), Changed)
		}
	}
	return nil
}

func statusesText() string {
	var names []string
	for _, s := range Statuses {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
