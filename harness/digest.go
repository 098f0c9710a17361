package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
)

// digest returns a hash of the task's fields, without Tags, and of the files that it names. The
// hash depends neither on the place of the files on this machine nor on the Config.
func (t Task) digest() (string, error) {
	sum := sha256.New()
	t.Tags = nil
	for _, list := range []struct {
		field string
		files *[]File
	}{{"files", &t.Files}, {"check.files", &t.Check.Files},
		{"solution.files", &t.Solution.Files}} {
		*list.files = slices.Clone(*list.files)
		for i, f := range *list.files {
			if err := digestTree(sum, f.From); err != nil {
				return "", fmt.Errorf("%s[%d].from: %w", list.field, i, err)
			}
			(*list.files)[i].From = ""
		}
	}
	if t.Build != nil {
		if err := digestTree(sum, t.Build.Dir); err != nil {
			return "", fmt.Errorf("build.dir: %w", err)
		}
		t.Build = &Build{Dockerfile: t.Build.Dockerfile}
	}
	if err := json.NewEncoder(sum).Encode(t); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]), nil
}

// digestTree writes the names, modes and contents of the files at root to sum. If root is "", it
// writes nothing.
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

// digestTasks sets r.digest and r.imageID for all tasks.
func (r *runner) digestTasks(ctx context.Context, tasks []Task) error {
	r.digest, r.imageID = map[string]string{}, map[string]string{}
	identifier, _ := r.cfg.Place.(imageIdentifier)
	images := map[string]string{}
	for _, t := range tasks {
		digest, err := t.digest()
		if err != nil {
			return fmt.Errorf("task %q: %w", t.ID, err)
		}
		r.digest[t.ID] = digest
		if t.Image == "" || identifier == nil {
			continue
		}
		id, known := images[t.Image]
		if !known {
			id, err = identifier.ImageID(ctx, t.Image)
			if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsInvalidArgument(err) {
				return err
			}
			images[t.Image] = id
		}
		r.imageID[t.ID] = id
	}
	return nil
}

// changed reports whether the task, its files or its image have changed since a result.
func (r *runner) changed(result Result) bool {
	now := r.imageID[result.Task]
	return result.Digest != r.digest[result.Task] ||
		result.Image != "" && now != "" && result.Image != now
}

// dropResults drops the results of tasks that have changed, and those that Config.Again names. It
// sets r.before for the former.
func (r *runner) dropResults() error {
	r.before = map[sampleID]Status{}
	return r.results.drop(func(result Result) bool {
		if _, ours := r.digest[result.Task]; !ours {
			return false
		}
		if r.changed(result) {
			r.before[result.id()] = result.Status
			return true
		}
		return slices.Contains(r.cfg.Again, string(result.Status)) ||
			slices.Contains(r.cfg.Again, result.Task)
	})
}

// checkAgain returns an error if an element of Config.Again is neither a status nor a task.
func checkAgain(again []string, tasks []Task) error {
	for _, a := range again {
		known := slices.Contains(Statuses, Status(a)) ||
			slices.ContainsFunc(tasks, func(t Task) bool { return t.ID == a })
		if !known {
			return fmt.Errorf("Config.Again: %q is neither a task nor a status: name a task, or %s",
				a, statusesText())
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
