package shellbox

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

// Glob implements sandbox.Files. (fs.Glob takes no directory whose name is not UTF-8, and is silent
// about a box that is lost.)
func (f files) Glob(ctx context.Context, pattern string) ([]string, error) {
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
	found, err := fileValue(ctx, f, fileCall{op: "glob", name: cmp.Or(prefix, "./")},
		func(ctx context.Context, c *fileUse, at string) ([]string, error) {
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

// meta are the characters that path.Match does not take as they are.
const meta = `*?[\`

// A glob is a search for the files that a pattern matches.
type glob struct {
	ctx    context.Context
	client FileClient
	found  []string
}

// search finds what rest, the elements of a pattern, matches in the directory at, which the caller
// knows as shown. Both end with a slash, or shown is "".
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
		return serious(err)
	}
	entries, err := g.client.ReadDir(at)
	if err != nil {
		return serious(err)
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

// serious returns err if it says more than that a file is not there or may not be looked at.
func serious(err error) error {
	if errors.Is(err, sandbox.ErrCut) {
		return err
	}
	return nil
}
