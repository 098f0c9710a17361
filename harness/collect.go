package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

// The bounds of what Task.Collect brings out of a box.
const (
	collectMax   = 64 << 20        // bytes
	collectFiles = 1000            // files and directories
	collectTime  = 5 * time.Minute // 1,000 files took a minute on a slow machine
)

// filesDir is the directory in Result.Dir for the files of Task.Collect.
const filesDir = "files"

func (t *attempt) filesDir() string { return filepath.Join(t.run.cfg.Dir, t.ahead.dir, filesDir) }

// A collector copies files out of a box. It follows no symbolic link in the box, and leaves out
// what is neither a file nor a directory. It writes only below root.
type collector struct {
	files   sandbox.Files
	root    *os.Root
	log     func(format string, args ...any)
	left    int64 // bytes
	entries int   // files and directories so far
	copied  int   // files so far
}

var errCollectFull = errors.New("the rest is left out")

// collect copies the files of Task.Collect to the task's directory. The log tells what cannot be
// copied, and the result is the same.
func (t *attempt) collect(ctx context.Context, w *workspace) {
	if len(t.task.Collect) == 0 {
		return
	}
	ctx, cancel := ctxerr.WithLimit(ctx, collectTime, tooLong(collectTime))
	defer cancel()
	dir := t.filesDir()
	err := os.Mkdir(dir, dirMode)
	if err == nil {
		err = t.collectInto(ctx, w, dir)
	}
	if err != nil {
		t.logf("collect: %v", err)
	}
}

func (t *attempt) collectInto(ctx context.Context, w *workspace, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	c := &collector{files: w.Files(), root: root, log: t.logf, left: collectMax}
	defer func() { t.collected = c.copied }()
	for _, name := range t.task.Collect {
		from := w.abs(name)
		info, err := c.files.Lstat(ctx, from)
		if err == nil {
			to := collectPath(name)
			if err = root.MkdirAll(filepath.FromSlash(path.Dir(to)), dirMode); err == nil {
				err = c.add(ctx, from, to, info)
			}
		}
		if err != nil {
			t.logf("collect %s: %v", name, err)
		}
		if errors.Is(err, errCollectFull) || ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// collectPath returns the path below files/ of an element of Task.Collect.
func collectPath(name string) string {
	if !path.IsAbs(name) && filepath.IsLocal(name) {
		return path.Clean(name)
	}
	return path.Join("/", name)[1:]
}

// add copies the file at from, and the files below it if it is a directory.
func (c *collector) add(ctx context.Context, from, to string, info fs.FileInfo) error {
	if c.entries++; c.entries > collectFiles {
		return fmt.Errorf("there are more than %d files: %w", collectFiles, errCollectFull)
	}
	switch {
	case info.Mode().IsRegular():
		return c.copy(ctx, from, to)
	case info.IsDir():
		return c.addDir(ctx, from, to)
	}
	c.log("collect %q: it is left out: neither a file nor a directory", from)
	return nil
}

func (c *collector) addDir(ctx context.Context, from, to string) error {
	if err := c.root.MkdirAll(filepath.FromSlash(to), dirMode); err != nil {
		return err
	}
	entries, err := c.files.ReadDir(ctx, from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if path.Base(name) != name || !filepath.IsLocal(name) || printable.Line(name) != name {
			if c.entries++; c.entries <= collectFiles {
				c.log("collect %q: it is left out: its name cannot be a file's here",
					join(from, e))
			}
			continue
		}
		info, err := e.Info()
		if err == nil {
			err = c.add(ctx, join(from, e), path.Join(to, name), info)
		}
		switch {
		case errors.Is(err, errCollectFull), ctx.Err() != nil:
			return err
		case err != nil:
			c.log("collect %q: %v", join(from, e), err)
		}
	}
	return nil
}

// copy copies one file. A file that does not fit, or cannot be read to its end, is left out.
func (c *collector) copy(ctx context.Context, from, to string) error {
	in, err := c.files.Open(ctx, from)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { in.Close() }) // ctx was for opening only
	defer stop()
	defer in.Close()
	name := filepath.FromSlash(to)
	out, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, c.left+1))
	if err == nil && n > c.left {
		err = fmt.Errorf("the files have more than %d MiB: %w", collectMax>>20, errCollectFull)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		c.root.Remove(name)
		if ctx.Err() != nil {
			err = ctxerr.Of(ctx)
		}
		return err
	}
	c.left -= n
	c.copied++
	return nil
}
