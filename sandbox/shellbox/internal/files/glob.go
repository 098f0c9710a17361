package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// Glob implements sandbox.Files. It does not use fs.Glob, which finds nothing in a directory whose
// name is not UTF-8, and does not report that the box is lost.
func (f *Files) Glob(ctx context.Context, pattern string) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, &fs.PathError{Op: "glob", Path: pattern, Err: err}
	}
	if pattern == "" {
		return nil, nil
	}
	// the directory where the search begins, and what is searched there
	prefix, rest := pattern, []string{""}
	if pattern != "~" {
		plain := pattern
		if i := strings.IndexAny(pattern, meta); i >= 0 {
			plain = pattern[:i]
		}
		at := strings.LastIndex(plain, "/") + 1
		prefix, rest = pattern[:at], strings.Split(pattern[at:], "/")
	}
	found, err := valueOf(ctx, f, call{op: "glob", name: cmp.Or(prefix, "./")},
		func(ctx context.Context, c *sharedClient, at string) ([]string, error) {
			g := glob{ctx: ctx, client: c}
			err := g.search(at, prefix, rest)
			return g.found, err
		})
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	return found, nil
}

// meta are the characters with a special meaning for path.Match.
const meta = `*?[\`

// A glob is a search for the files that a pattern matches.
type glob struct {
	ctx    context.Context
	client Client
	found  []string
}

// search finds the files in the directory at that match rest, the elements of a pattern. shown is
// the caller's name of that directory. Both names end with a slash, or shown is "".
func (g *glob) search(at, shown string, rest []string) error {
	if g.ctx.Err() != nil {
		return ctxerr.Of(g.ctx)
	}
	element, last := rest[0], len(rest) == 1
	if !strings.ContainsAny(element, meta) {
		if !last {
			return g.search(at+element+"/", shown+element+"/", rest[1:])
		}
		_, err := g.client.Lstat(at + element)
		if err == nil {
			g.found = append(g.found, shown+element)
		}
		return onlyCut(err)
	}
	entries, err := g.client.ReadDir(at)
	if err != nil {
		return onlyCut(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if ok, _ := path.Match(element, name); !ok {
			continue
		}
		as := shown + name
		if as == "~" {
			as = "./~" // the file, not the user's home
		}
		switch {
		case last:
			g.found = append(g.found, as)
		case entry.IsDir() || entry.Mode()&fs.ModeSymlink != 0:
			if err := g.search(at+name+"/", as+"/", rest[1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyCut returns err if it is sandbox.ErrCut. Any other error says that the file does not exist or
// cannot be seen: then it does not match.
func onlyCut(err error) error {
	if errors.Is(err, sandbox.ErrCut) {
		return err
	}
	return nil
}
