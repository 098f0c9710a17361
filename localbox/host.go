package localbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A host starts processes of this machine.
type host struct {
	temp string // to be removed
	once sync.Once
	err  error
}

func (h *host) String() string { return "LocalBox" }

// Lost implements shellbox.Host: this machine is always there.
func (h *host) Lost(context.Context) error { return nil }

// Dial implements shellbox.Host.
func (h *host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Start implements shellbox.Host.
func (h *host) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.Dir != "" {
		if err := isDir(p.Dir); err != nil {
			return nil, err
		}
	}
	cmd := &exec.Cmd{Args: p.Args, Dir: p.Dir, Env: append(os.Environ(), p.Env...)}
	if p.Dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+p.Dir)
	}
	path, err := lookPath(p.Args[0], cmd.Env, p.Dir)
	if err != nil {
		return nil, err
	}
	cmd.Path = path
	if p.Terminal != nil {
		return startTerminal(cmd, p.Terminal)
	}
	return startPipes(cmd)
}

// Close implements shellbox.Host.
func (h *host) Close() error {
	h.once.Do(func() {
		if h.temp != "" {
			h.err = removeAll(h.temp)
		}
	})
	return h.err
}

// removeAll removes dir although there may be read-only directories in it, as Go's module cache has them.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				os.Chmod(p, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	return err
}

// lookPath finds the program in the PATH of env; os/exec would take this program's.
func lookPath(name string, env []string, dir string) (string, error) {
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

// notFound says that a program does not exist, in the words of os/exec and of io/fs.
type notFound struct {
	name string
	err  error
}

func (e *notFound) Error() string   { return fmt.Sprintf("%s: no such program", e.name) }
func (e *notFound) Unwrap() []error { return []error{exec.ErrNotFound, fs.ErrNotExist} }
