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

// Command returns the exec.Cmd of the program args[0], which LookPath finds in env and dir, with
// the arguments args. It runs in dir. A relative dir starts at this program's own directory, which
// is also the default. env is the whole environment, "NAME=value"; the last value of a name counts.
// If dir is not "", PWD is added.
//
// The errors are those of CheckDir and LookPath, as shellbox.Host's Start must return them. If
// there are no args, the error is os.ErrInvalid.
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

// LookPath finds a program that is to run in dir with the environment env, "NAME=value". It looks
// in the last PATH of env; exec.LookPath would use this program's own. A name with a slash is
// looked up in dir only. The result is absolute if dir is. If there is no such file, the error is
// both fs.ErrNotExist and exec.ErrNotFound. If there is one that may not be executed, it is
// fs.ErrPermission.
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

// CheckDir returns an error unless dir is a directory in which this user can start a program. The
// error is an *fs.PathError: fs.ErrNotExist, fs.ErrPermission, or syscall.ENOTDIR for a file that
// is no directory. (The error of os/exec would be the same as for a missing program.)
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

// A notFound error says that a program does not exist. It is the error of both os/exec and io/fs.
type notFound struct {
	name string
	err  error
}

func (e *notFound) Error() string   { return fmt.Sprintf("%s: no such program", e.name) }
func (e *notFound) Unwrap() []error { return []error{exec.ErrNotFound, fs.ErrNotExist} }
