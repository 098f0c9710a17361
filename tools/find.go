package tools

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

type findArgs struct {
	Pattern string `json:"pattern" jsonschema:"the pattern of the files' paths"`

	Dir     string `json:"dir,omitempty" jsonschema:"where to start. Default: the shell's directory"`
	Ignored bool   `json:"ignored,omitempty"`
}

func (t *files) find(ctx context.Context, a findArgs) (*Reply, error) {
	if a.Pattern == "" {
		return nil, errors.New("the pattern is empty: give one, such as *.go or **/*.go")
	}
	ctx, done := t.withLimit(ctx, "give a dir further down")
	defer done()
	dir, pattern := a.Dir, path.Clean(a.Pattern)
	if dir == "" {
		dir = "."
	}
	if path.IsAbs(pattern) {
		dir, pattern = splitPattern(pattern)
	}
	for strings.HasPrefix(pattern, "../") {
		dir, pattern = path.Join(dir, ".."), pattern[len("../"):]
	}
	globs, err := splitGlobs(pattern, a.Pattern)
	if err != nil {
		return nil, err
	}
	if _, err := t.files.Stat(ctx, dir); err != nil {
		return nil, err
	}
	w := walk{files: t, dir: dir, ignored: a.Ignored || globs.name(".git"),
		enter: globs.mayContain}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	var found []string
	for _, e := range w.found {
		if globs.match(e.name) {
			found = append(found, shownName(path.Join(dir, e.name)))
		}
	}
	r := t.listLines(found, w.none("files"), "files: give a narrower pattern")
	r.Text += w.fullNote()
	return r, nil
}

// none returns the text for a walk that has found nothing of what it looked for.
func (w *walk) none(what string) string {
	if w.skipped == 0 {
		return fmt.Sprintf("[no %s]\n", what)
	}
	return fmt.Sprintf("[no %s; left out what is ignored, %d files and directories: set ignored "+
		"to look there too]\n", what, w.skipped)
}

// fullNote returns the note for a walk that has not seen the whole tree, and "" for others.
func (w *walk) fullNote() string {
	if !w.isFull() {
		return ""
	}
	return fmt.Sprintf("[stopped after %d entries: give a directory further down]\n", maxEntries)
}

// splitPattern splits an absolute pattern before the first segment that has a wildcard.
func splitPattern(pattern string) (dir, rest string) {
	segments := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	n := 0
	for n < len(segments)-1 && !strings.ContainsAny(segments[n], `*?[\`) {
		n++
	}
	return "/" + strings.Join(segments[:n], "/"), strings.Join(segments[n:], "/")
}
