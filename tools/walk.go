package tools

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// maxEntries is how many entries of a directory tree a walk looks at.
const maxEntries = 100_000

// maxParallel is how many files or directories are read at the same time. It bounds the memory, and
// makes the time of a walk over a distant link bearable.
const maxParallel = 16

// inParallel calls f with 0 to n-1, some at the same time. Once ctx has ended, it makes no more
// calls.
func inParallel(ctx context.Context, n int, f func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, maxParallel) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	workers.Wait()
}

// A walk goes through a directory tree. It follows no symbolic links.
type walk struct {
	files   *files
	dir     string                 // where it begins
	ignored bool                   // whether it also goes through .git and what git ignores
	enter   func(name string) bool // whether it goes into a directory; nil: into all

	found   []walkEntry
	looked  int
	skipped int // entries that are .git or that git ignores
}

// A walkEntry is an entry of the tree. Its name is relative to the walk's directory.
type walkEntry struct {
	name string
	fs.DirEntry
}

// A walkDir is a directory that the walk goes into.
type walkDir struct {
	name    string // with a slash at its end, or "" for the walk's directory
	rules   []ignoreRules
	entries []fs.DirEntry
	err     error
}

// run goes through the tree, and sets found, in the order of the names. It leaves out what cannot
// be read. If there are more than maxEntries entries, it stops there.
func (w *walk) run(ctx context.Context) error {
	level := []walkDir{{}}
	if !w.ignored {
		level[0].rules = w.files.rulesAbove(ctx, w.dir)
	}
	for len(level) > 0 && !w.isFull() {
		inParallel(ctx, len(level), func(i int) { w.read(ctx, &level[i]) })
		if ctx.Err() != nil {
			return ctxerr.Of(ctx)
		}
		var next []walkDir
		for i := range level {
			below, err := w.add(ctx, &level[i])
			if err != nil {
				return err
			}
			next = append(next, below...)
		}
		level = next
	}
	slices.SortFunc(w.found, func(a, b walkEntry) int { return cmp.Compare(a.name, b.name) })
	return nil
}

// isFull reports whether the walk has looked at as many entries as it may.
func (w *walk) isFull() bool { return w.looked >= maxEntries }

// read reads the entries of a directory, and its .gitignore.
func (w *walk) read(ctx context.Context, d *walkDir) {
	at := w.dir + "/" + d.name
	d.entries, d.err = w.files.files.ReadDir(ctx, at)
	if w.ignored || !slices.ContainsFunc(d.entries, func(e fs.DirEntry) bool {
		return e.Name() == ignoreName && e.Type().IsRegular()
	}) {
		return
	}
	if rules := w.files.readIgnore(ctx, at); len(rules) > 0 {
		d.rules = append(slices.Clip(d.rules), ignoreRules{rules: rules, below: len(d.name)})
	}
}

// add adds the entries of a directory to those that are found, and returns the directories to go
// into.
func (w *walk) add(ctx context.Context, d *walkDir) (below []walkDir, err error) {
	if d.err != nil && (d.name == "" || !errors.Is(d.err, fs.ErrPermission) &&
		!errors.Is(d.err, fs.ErrNotExist)) {
		return nil, d.err
	}
	for _, e := range d.entries {
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
		if w.isFull() {
			return below, nil
		}
		w.looked++
		name := d.name + e.Name()
		if !w.ignored && (e.Name() == ".git" || isIgnored(d.rules, name, e.IsDir())) ||
			isSystem(path.Join(w.dir, name)) {
			w.skipped++
			continue
		}
		w.found = append(w.found, walkEntry{name, e})
		if e.IsDir() && (w.enter == nil || w.enter(name)) {
			below = append(below, walkDir{name: name + "/", rules: d.rules})
		}
	}
	return below, nil
}

// isSystem reports whether a directory holds what the kernel tells, and no files.
func isSystem(name string) bool { return name == "/proc" || name == "/sys" }
