package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

type findArgs struct {
	Pattern string `json:"pattern" jsonschema:"the pattern of the files' paths"`
	Dir     string `json:"dir,omitempty" jsonschema:"the directory where the pattern starts. Default: the shell's"`
}

func (t *files) find(ctx context.Context, a findArgs) (*Reply, error) {
	ctx, done := t.bounded(ctx)
	defer done()
	dir, pattern := a.Dir, path.Clean(a.Pattern)
	if dir == "" {
		dir = "."
	}
	if path.IsAbs(pattern) {
		dir, pattern = fixed(pattern)
	}
	segments := strings.Split(pattern, "/")
	for _, s := range segments {
		if _, err := path.Match(s, ""); err != nil {
			return nil, fmt.Errorf("in the pattern %q, the part %q has a [ without a ], or a "+
				"\\ at its end", a.Pattern, s)
		}
	}
	if _, err := t.files.Stat(ctx, dir); err != nil {
		return nil, err
	}
	view := t.files.FS(ctx, dir)
	var found []string
	looked := 0
	err := fs.WalkDir(view, ".", func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctxerr.Of(ctx)
		}
		if err != nil {
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil // it may not be read, or has just gone
			}
			return err
		}
		if looked++; looked > mostEntries {
			return errTooMany
		}
		if name == "." {
			return nil
		}
		parts := strings.Split(name, "/")
		if matches(segments, parts) {
			found = append(found, path.Join(dir, name))
		}
		if e.IsDir() && !leads(segments, parts) {
			return fs.SkipDir
		}
		return nil
	})
	if errors.Is(err, errTooMany) {
		r := t.lines(found, "files")
		r.Text += fmt.Sprintf("[stopped after %d entries: name a directory further down]\n",
			mostEntries)
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return t.lines(found, "files"), nil
}

// mostEntries bounds how much of a tree is looked at.
const mostEntries = 100_000

var errTooMany = errors.New("too many entries")

// fixed splits an absolute pattern behind the directories that have no pattern's characters.
func fixed(pattern string) (dir, rest string) {
	segments := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	n := 0
	for n < len(segments)-1 && !strings.ContainsAny(segments[n], `*?[\`) {
		n++
	}
	return "/" + strings.Join(segments[:n], "/"), strings.Join(segments[n:], "/")
}

// matches reports whether a path's parts match a pattern's segments, which path.Match has checked.
func matches(segments, parts []string) bool {
	if len(segments) == 0 {
		return len(parts) == 0
	}
	if segments[0] == "**" {
		return matches(segments[1:], parts) || len(parts) > 0 && matches(segments, parts[1:])
	}
	if len(parts) == 0 {
		return false
	}
	ok, _ := path.Match(segments[0], parts[0])
	return ok && matches(segments[1:], parts[1:])
}

// leads reports whether something in a directory can match.
func leads(segments, parts []string) bool {
	for i, part := range parts {
		if i >= len(segments) {
			return false
		}
		if segments[i] == "**" {
			return true
		}
		if ok, _ := path.Match(segments[i], part); !ok {
			return false
		}
	}
	return len(segments) > len(parts)
}
