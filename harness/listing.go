package harness

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math/bits"
	"regexp"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A listing is what Check.Like compares: names, kinds, permissions, targets of links and sums of
// contents. It is read by Files, so no program of the box that an agent may have replaced has a
// part in it.
type listing struct {
	files  sandbox.Files
	except []*regexp.Regexp
	key    []byte // of the sums, made for each trial: nobody can look for two contents of one sum
	lines  map[string]string
	memory bounded.List
}

// listingMax bounds a listing: the memory of its names. A box can hold names without end.
const listingMax = 32 << 20

// newKey makes a key for listings that are to be compared.
func newKey() []byte {
	key := make([]byte, sha256.Size)
	rand.Read(key)
	return key
}

// list lists what Check.Like names.
func (p *workspace) list(ctx context.Context, c Check, key []byte) (map[string]string, error) {
	l := &listing{files: p.Files(), key: key, lines: map[string]string{}}
	l.memory = bounded.List{What: "the list of the files", Max: listingMax}
	for _, e := range c.Except {
		l.except = append(l.except, findPattern(e))
	}
	for _, name := range c.Like {
		info, err := l.files.Lstat(ctx, p.abs(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = l.add(ctx, p.abs(name), name, info)
		}
		if err != nil {
			return nil, fmt.Errorf("list %.200q: %w", name, err)
		}
	}
	return l.lines, nil
}

// add adds what is at path, and below it; name is what find would call it.
func (l *listing) add(ctx context.Context, path, name string, info fs.FileInfo) error {
	for _, e := range l.except {
		if e.MatchString(name) {
			return nil
		}
	}
	var is string
	var err error
	switch mode := info.Mode(); {
	case mode.IsRegular():
		is, err = l.sum(ctx, path)
	case mode&fs.ModeSymlink != 0:
		is, err = l.target(ctx, path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // it has just gone
		return nil
	case errors.Is(err, fs.ErrPermission):
		is = "not to be read"
	case err != nil:
		return err
	}
	if err := l.memory.Add(len(name) + len(is)); err != nil {
		return err
	}
	l.lines[name] = info.Mode().String() + " " + is
	if !info.IsDir() {
		return nil
	}
	entries, err := l.files.ReadDir(ctx, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := l.add(ctx, below(path, entry), below(name, entry), info); err != nil {
			return err
		}
	}
	return nil
}

// below is the path of an entry of dir. It keeps what path.Join would clean, as find does.
func below(dir string, e fs.DirEntry) string {
	return strings.TrimSuffix(dir, "/") + "/" + e.Name()
}

// target is where a link leads.
func (l *listing) target(ctx context.Context, path string) (string, error) {
	reader, ok := l.files.(sandbox.LinkReader)
	if !ok {
		return "", fmt.Errorf("read link %.200q: %w", path, errors.ErrUnsupported)
	}
	return reader.ReadLink(ctx, path)
}

// sum is the same for files of the same lines, whatever their order: what find prints is in none.
func (l *listing) sum(ctx context.Context, path string) (string, error) {
	file, err := l.files.Open(ctx, path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	s := &lineSum{of: hmac.New(sha256.New, l.key)}
	piece := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := file.Read(piece)
		s.add(piece[:n])
		if err == io.EOF {
			return s.String(), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", ctxerr.Of(ctx)
}

// A lineSum adds up the keyed hashes of lines. A line is hashed as it comes, however long it is.
type lineSum struct {
	of    hash.Hash
	open  bool // a line has begun
	count uint64
	total [4]uint64
}

func (s *lineSum) add(p []byte) {
	for len(p) > 0 {
		line, rest, ends := strings.Cut(string(p), "\n")
		io.WriteString(s.of, line)
		s.open = true
		if ends {
			s.end()
		}
		p = p[len(p)-len(rest):]
	}
}

// end ends a line.
func (s *lineSum) end() {
	sum := s.of.Sum(nil)
	s.of.Reset()
	s.open = false
	s.count++
	var carry uint64
	for i := range s.total {
		var word uint64
		for _, b := range sum[8*i : 8*i+8] {
			word = word<<8 | uint64(b)
		}
		s.total[i], carry = bits.Add64(s.total[i], word, carry)
	}
}

func (s *lineSum) String() string {
	if s.open { // the last line has no end
		s.end()
	}
	return fmt.Sprintf("%d lines, %x", s.count, s.total)
}

// findPattern makes a regular expression of a pattern of find -path, whose * and ? match a slash
// too.
func findPattern(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for rest := pattern; rest != ""; {
		char := rest[:1] // of a rune of several bytes, each
		c := char[0]
		rest = rest[1:]
		end := strings.IndexByte(rest, ']')
		switch {
		case c == '*':
			b.WriteString(".*")
		case c == '?':
			b.WriteByte('.')
		case c == '\\' && rest != "":
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			rest = rest[1:]
		case c == '[' && end > 0:
			set := rest[:end]
			not := strings.HasPrefix(set, "!") || strings.HasPrefix(set, "^")
			b.WriteByte('[')
			if not {
				b.WriteByte('^')
				set = set[1:]
			}
			b.WriteString(strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(set))
			b.WriteByte(']')
			rest = rest[end+1:]
		default:
			b.WriteString(regexp.QuoteMeta(char))
		}
	}
	re, err := regexp.Compile(b.String() + "$")
	if err != nil { // a range such as [z-a], which matches nothing
		return regexp.MustCompile(`^\b$`)
	}
	return re
}
