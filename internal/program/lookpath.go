// Package program has what starting a program takes beyond os/exec: finding it in the PATH of its own environment, and a terminal for it.
package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// LookPath finds the program in the PATH of env, for a program that is to run in dir; os/exec's takes this program's own. An error is
// fs.ErrNotExist and exec.ErrNotFound, or fs.ErrPermission.
func LookPath(name string, env []string, dir string) (string, error) {
	if name == "" {
		return "", &notFound{"an empty name", fs.ErrNotExist}
	}
	missing := func(err error) error { return &notFound{name, err} }
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		switch err := executable(name); {
		case errors.Is(err, fs.ErrNotExist):
			return "", missing(err)
		case err != nil:
			return "", err
		}
		return name, nil
	}
	var list string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			list = v
		}
	}
	var denied error
	for _, d := range filepath.SplitList(list) {
		if d == "" {
			d = "."
		}
		p := filepath.Join(d, name)
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		err := executable(p)
		if err == nil {
			return p, nil
		}
		if denied == nil && errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", missing(fs.ErrNotExist)
}

func executable(p string) error {
	info, err := os.Stat(p)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return &fs.PathError{Op: "execute", Path: p, Err: fs.ErrPermission}
	}
	return nil
}

// CheckDir returns an error unless dir is a directory that can be entered.
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return &fs.PathError{Op: "chdir", Path: dir, Err: errors.Unwrap(err)}
	case !info.IsDir():
		return &fs.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err := enterable(dir); err != nil {
		return &fs.PathError{Op: "chdir", Path: dir, Err: err}
	}
	return nil
}

// notFound says that a program does not exist, in the words of os/exec and of io/fs.
type notFound struct {
	name string
	err  error
}

func (e *notFound) Error() string   { return fmt.Sprintf("%s: no such program", e.name) }
func (e *notFound) Unwrap() []error { return []error{exec.ErrNotFound, fs.ErrNotExist} }
