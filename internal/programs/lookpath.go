package programs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Command returns the exec.Cmd of a program: args[0], looked up by LookPath in env and dir, with
// all of args as its arguments. It runs in dir; "" is this program's own directory, where a
// relative one starts. env is its whole environment, "NAME=value", of which the later of two of a
// name counts; PWD is added where there is a dir.
//
// The errors are those that shellbox.Host's Start is to return: CheckDir's and LookPath's. No args
// at all are os.ErrInvalid.
func Command(args []string, dir string, env []string) (*exec.Cmd, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("%w: no program is named", os.ErrInvalid)
	}
	env = slices.Clip(env)
	if dir != "" {
		var err error
		if dir, err = filepath.Abs(dir); err == nil {
			err = CheckDir(dir)
		}
		if err != nil {
			return nil, err
		}
		env = append(env, "PWD="+dir)
	}
	path, err := LookPath(args[0], env, dir)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: path, Args: args, Dir: dir, Env: env}, nil
}

// LookPath finds a program that is to run in dir with the environment env, "NAME=value": in the
// last PATH in env, where exec.LookPath takes this program's own. A name that has a slash is looked
// for in dir alone. The path that it returns is absolute if dir is. An error is both fs.ErrNotExist
// and exec.ErrNotFound if there is no such file, and fs.ErrPermission if there is one that may not
// be executed.
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

// CheckDir returns an error unless dir is a directory in which this user can start a program. It is
// an *fs.PathError: fs.ErrNotExist, fs.ErrPermission, or syscall.ENOTDIR for what is no directory.
// (os/exec's would be the same as for a program that is missing.)
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
