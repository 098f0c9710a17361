package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

type searchArgs struct {
	Pattern string `json:"pattern"`

	Path    string `json:"path,omitempty"`
	Files   string `json:"files,omitempty"`
	Context int    `json:"context,omitempty"`
	Ignored bool   `json:"ignored,omitempty"`
}

// The bounds of a search.
const (
	maxSearched = 4 << 20 // bytes of a file
	maxContext  = 20      // lines
	maxMatching = 50      // lines of a file that are shown, if it is one of several
	searchBatch = 16 * maxParallel
)

// A search is one call of the tool search.
type search struct {
	*files
	args     searchArgs
	pattern  *regexp.Regexp
	literal  []byte // each match begins with it
	matching int    // how many matching lines of a file are shown at most

	large, unreadable []string // files that were not searched
}

// A searched is what a search has found in a file.
type searched struct {
	text  string // "" if nothing matches
	large bool
	err   error
}

func (t *files) search(ctx context.Context, a searchArgs) (*Reply, error) {
	pattern, err := compileSearch(a.Pattern)
	if err != nil {
		return nil, err
	}
	ctx, done := t.withLimit(ctx, "give a path further down, or files")
	defer done()
	literal, _ := pattern.LiteralPrefix()
	s := &search{files: t, args: a, pattern: pattern, literal: []byte(literal),
		matching: maxMatching}
	at := a.Path
	if at == "" {
		at = "."
	}
	info, err := t.files.Stat(ctx, at)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return s.inFile(ctx, at)
	}
	w := walk{files: t, dir: at, ignored: a.Ignored}
	names, err := s.candidates(ctx, &w)
	if err != nil {
		return nil, err
	}
	text, err := s.inFiles(ctx, names)
	if err != nil {
		return nil, err
	}
	switch {
	case text != "":
	case len(names) == 0 && a.Files != "":
		text = w.none(fmt.Sprintf("files that fit %q", abbreviate(a.Files)))
	default:
		text = w.none("matches") + s.lineNote()
	}
	return &Reply{Text: text + s.notSearched() + w.fullNote()}, nil
}

// compileSearch compiles the pattern of a search.
func compileSearch(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, errors.New("the pattern is empty: give a regular expression")
	}
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	return nil, fmt.Errorf("the pattern %q is no regular expression in RE2's syntax, which has "+
		"neither lookaround nor backreferences: %s. Put a \\ before ( ) [ ] { } . * + ? | ^ $ "+
		"to look for the character itself", abbreviate(pattern),
		strings.TrimPrefix(err.Error(), "error parsing regexp: "))
}

// inFile searches one file, which the model has named.
func (s *search) inFile(ctx context.Context, name string) (*Reply, error) {
	s.matching = s.config.MaxReply // a line has a byte or more
	r := s.read(ctx, name)
	switch {
	case r.err != nil:
		return nil, r.err
	case r.large:
		return nil, fmt.Errorf("%s has more than %d bytes: run a program such as grep", name,
			maxSearched)
	case r.text == "":
		return &Reply{Text: "[no matches]\n" + s.lineNote()}, nil
	}
	return &Reply{Text: s.cut(r.text)}, nil
}

// lineNote returns a note for a pattern that can match no line, and "" for others.
func (s *search) lineNote() string {
	if !strings.Contains(s.args.Pattern, "\n") && !strings.Contains(s.args.Pattern, `\n`) {
		return ""
	}
	return "[each line is searched by itself, so a pattern with a line end matches nothing]\n"
}

// candidates returns the files to search, in their order.
func (s *search) candidates(ctx context.Context, w *walk) (names []string, err error) {
	var globs globs
	if glob := s.args.Files; glob != "" {
		if !strings.Contains(glob, "/") {
			glob = "**/" + glob
		}
		if globs, err = splitGlobs(path.Clean(glob), s.args.Files); err != nil {
			return nil, err
		}
		w.enter = globs.mayContain
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	for _, e := range w.found {
		if e.Type().IsRegular() &&
			(globs == nil || globs.match(e.name)) {
			names = append(names, w.dir+"/"+e.name)
		}
	}
	return names, nil
}

// inFiles searches files, and returns what matches, in their order. It stops once the reply is
// full.
func (s *search) inFiles(ctx context.Context, names []string) (string, error) {
	var text strings.Builder
	for len(names) > 0 && text.Len() <= s.config.MaxReply {
		batch := names[:min(searchBatch, len(names))]
		names = names[len(batch):]
		results := make([]searched, len(batch))
		inParallel(ctx, len(batch), func(i int) { results[i] = s.read(ctx, batch[i]) })
		if ctx.Err() != nil {
			return "", ctxerr.Of(ctx)
		}
		for i, r := range results {
			name := shownName(path.Clean(batch[i]))
			switch {
			case errors.Is(r.err, sandbox.ErrClosed), errors.Is(r.err, sandbox.ErrLost):
				return "", r.err
			case errors.Is(r.err, fs.ErrNotExist): // it was removed
			case r.err != nil:
				s.unreadable = append(s.unreadable, name)
			case r.large:
				s.large = append(s.large, name)
			case r.text != "" && text.Len() > 0:
				text.WriteString("\n" + r.text)
			default:
				text.WriteString(r.text)
			}
		}
	}
	return s.cut(text.String()), nil
}

// read searches a file. It may be called from several goroutines.
func (s *search) read(ctx context.Context, name string) searched {
	data, err := s.files.files.ReadFile(ctx, name, maxSearched)
	if errors.As(err, new(*sandbox.TooLargeError)) {
		return searched{large: true}
	}
	if err != nil {
		return searched{err: err}
	}
	if utf16 := utf16Of(data); utf16 != nil {
		if decoded, err := utf16.NewDecoder().Bytes(data); err == nil {
			data = decoded
		}
	}
	data = bytes.TrimPrefix(data, markUTF8)
	if !bytes.Contains(data, s.literal) {
		return searched{}
	}
	shown := shownName(path.Clean(name))
	if binaryKind(data[:min(len(data), sniffSize)]) != "" {
		if s.pattern.Match(data) {
			return searched{text: fmt.Sprintf("[%s is a binary file, and matches]\n", shown)}
		}
		return searched{}
	}
	text := s.lines(data)
	if text != "" {
		text = shown + "\n" + text
	}
	return searched{text: text}
}

// cut returns text as it fits in a reply.
func (s *search) cut(text string) string {
	room := s.config.MaxReply - 2*noteRoom // notes may follow
	if len(text) <= room {
		return text
	}
	text = text[:room]
	return text[:strings.LastIndexByte(text, '\n')+1] +
		"[more matches follow: give a narrower pattern, path or files]\n"
}

// notSearched returns a note about the files that were not searched.
func (s *search) notSearched() string {
	note := func(names []string, why string) string {
		switch len(names) {
		case 0:
			return ""
		case 1:
			return fmt.Sprintf("[not searched: %s, which %s]\n", abbreviate(names[0]), why)
		}
		return fmt.Sprintf("[not searched: %s and %d more, each of which %s]\n",
			abbreviate(names[0]), len(names)-1, why)
	}
	return note(s.large, fmt.Sprintf("has more than %d MiB", maxSearched>>20)) +
		note(s.unreadable, "cannot be read")
}
