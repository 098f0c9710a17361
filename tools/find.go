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

	Dir string `json:"dir,omitempty" jsonschema:"where to start. Default: the shell's directory"`
}

func (t *files) find(ctx context.Context, a findArgs) (*Reply, error) {
	ctx, done := t.withLimit(ctx)
	defer done()
	dir, pattern := a.Dir, path.Clean(a.Pattern)
	if dir == "" {
		dir = "."
	}
	if path.IsAbs(pattern) {
		dir, pattern = splitPattern(pattern)
	}
	segments := strings.Split(pattern, "/")
	for _, s := range segments {
		if _, err := path.Match(s, ""); err != nil {
			return nil, fmt.Errorf("in the pattern %q, the part %q has a [ without a ], or "+
				"ends in \\", a.Pattern, s)
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
				return nil // it cannot be read, or has just been removed
			}
			return err
		}
		if looked++; looked > maxEntries {
			return errTooMany
		}
		if name == "." {
			return nil
		}
		parts := strings.Split(name, "/")
		if matches(segments, parts) {
			found = append(found, path.Join(dir, name))
		}
		if e.IsDir() && !mayContain(segments, parts) {
			return fs.SkipDir
		}
		return nil
	})
	if errors.Is(err, errTooMany) {
		r := t.listLines(found, "files")
		r.Text += fmt.Sprintf("[stopped after %d entries: give a dir further down]\n",
			maxEntries)
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return t.listLines(found, "files"), nil
}

// maxEntries is how many entries of a tree find looks at.
const maxEntries = 100_000

var errTooMany = errors.New("too many entries")

// splitPattern splits an absolute pattern after the directories whose names are no patterns.
func splitPattern(pattern string) (dir, rest string) {
	segments := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	n := 0
	for n < len(segments)-1 && !strings.ContainsAny(segments[n], `*?[\`) {
		n++
	}
	return "/" + strings.Join(segments[:n], "/"), strings.Join(segments[n:], "/")
}

// matches reports whether the parts of a path match the segments of a pattern, which are well
// formed.
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

// mayContain reports whether anything in the directory of these parts can match.
func mayContain(segments, parts []string) bool {
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
