package sshbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
)

// copyTree copies a tree into the box and back.
func copyTree(t *testing.T, box sandbox.Sandbox, dir string) {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	for name, content := range map[string]string{"empty": "", "a name\nof two lines": "x",
		"deep/er/file": strings.Repeat("0123456789", 100000)} {
		noError(t, os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755))
		noError(t, os.WriteFile(filepath.Join(tree, name), []byte(content), 0o644))
	}
	noError(t, os.Mkdir(filepath.Join(tree, "hollow"), 0o700))
	noError(t, os.Chmod(filepath.Join(tree, "empty"), 0o750))
	noError(t, os.Symlink("deep/er", filepath.Join(tree, "link")))
	noError(t, box.CopyTo(t.Context(), tree, dir+"/tree"))
	if got := script(t, box, `cd "$1" && [ -x empty ] && [ -d hollow ] && [ -f link/file ] && read -r l <"a name
of two lines"; echo $?$l`, dir+"/tree"); got != "1x\n" { // there is no newline to read
		t.Errorf("the tree in the box: %q", got)
	}
	back := filepath.Join(t.TempDir(), "back")
	noError(t, box.CopyFrom(t.Context(), dir+"/tree", back))
	if a, b := describeTree(t, tree), describeTree(t, back); a != b {
		t.Errorf("sent\n%s\ngot back\n%s", a, b)
	}
}

// describeTree describes all that is in a directory: names, modes, targets and contents.
func describeTree(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	noError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&out, "%q %v", name, info.Mode())
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(&out, " to %s", target)
			defer fmt.Fprintln(&out)
			return err
		case d.Type().IsRegular():
			content, err := os.ReadFile(path)
			fmt.Fprintf(&out, " %d %.20q", len(content), content)
			defer fmt.Fprintln(&out)
			return err
		}
		fmt.Fprintln(&out)
		return nil
	}))
	return out.String()
}

// writeTree makes a directory with several files.
func writeTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	noError(t, os.MkdirAll(filepath.Join(tree, "deep", "er"), 0o755))
	for name, content := range map[string]string{"file": "content", "a name": "",
		"deep/large": strings.Repeat("0123456789", 300000), "deep/er/script": "#!/bin/sh\n"} {
		noError(t, os.WriteFile(filepath.Join(tree, name), []byte(content), 0o644))
	}
	noError(t, os.Chmod(filepath.Join(tree, "deep/er/script"), 0o755))
	return tree
}
