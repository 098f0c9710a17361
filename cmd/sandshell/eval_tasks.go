package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/harness"
)

// readTasks reads the tasks at a path, and selects those whose ID matches a pattern of only. If
// only is empty, it selects all. The image is for a file of InterCode, which names none.
func readTasks(at, image string, only []string) (tasks []harness.Task, err error) {
	intercode := filepath.Ext(at) == ".json"
	switch {
	case intercode && image == "":
		return nil, fmt.Errorf("%s: a .json file of InterCode names no image: give -image", at)
	case !intercode && image != "":
		return nil, errors.New("-image is only for a .json file of InterCode: leave it out, " +
			"because other tasks name their images")
	case intercode:
		tasks, err = harness.ReadInterCode(at, harness.InterCode{Image: image})
	default:
		tasks, err = harness.Read(at)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: give a .jsonl file or a directory of tasks: "+
			"docs/evaluation.md shows both", err)
	}
	if err != nil || len(only) == 0 {
		return tasks, err
	}
	selected := map[string]bool{} // by ID
	for _, pattern := range only {
		found := false
		for _, t := range tasks {
			matches, err := path.Match(pattern, t.ID)
			if err != nil {
				return nil, fmt.Errorf("-only %q: %w: give an ID, with * for any characters but /",
					pattern, err)
			}
			found = found || matches
			selected[t.ID] = selected[t.ID] || matches
		}
		if !found {
			return nil, fmt.Errorf("-only %q: no task's ID matches it; the first is %q", pattern,
				tasks[0].ID)
		}
	}
	return slices.DeleteFunc(tasks, func(t harness.Task) bool { return !selected[t.ID] }), nil
}

// count returns a function for flag.Func that sets a number of at least least. Where 0 means none,
// it sets -1, because 0 is the default to package harness.
func count(to *int, least int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			return fmt.Errorf("give a whole number from %d", least)
		}
		if n == 0 {
			n = -1
		}
		*to = n
		return nil
	}
}

// items returns a function for flag.Func that adds what commas separate.
func items(to *[]string) func(string) error {
	return func(text string) error {
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*to = append(*to, item)
			}
		}
		return nil
	}
}
