package harness

import (
	"bytes"
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
// contents. It is read through Files, so no program of the box, which an agent may have replaced,
// takes part.
type listing struct {
	files  sandbox.Files
	except []*regexp.Regexp
	key    []byte            // of the sums; secret, so that an agent cannot forge a collision
	lines  map[string]string // by path
	memory bounded.List
}

// listingMax bounds the memory of a listing, in bytes. A box can hold any number of files.
const listingMax = 32 << 20

// newKey returns a random key. Only listings of one key can be compared.
func newKey() []byte {
	key := make([]byte, sha256.Size)
	rand.Read(key)
	return key
}

// list returns the listing of the paths in c.Like.
func (w *workspace) list(ctx context.Context, c Check, key []byte) (map[string]string, error) {
	l := &listing{files: w.Files(), key: key, lines: map[string]string{}}
	l.memory = bounded.List{What: "the list of the files", Max: listingMax}
	for _, e := range c.Except {
		l.except = append(l.except, findPattern(e))
	}
	for _, name := range c.Like {
		info, err := l.files.Lstat(ctx, w.abs(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = l.add(ctx, w.abs(name), name, info)
		}
		if err != nil {
			return nil, fmt.Errorf("list %.200q: %w", name, err)
		}
	}
	return l.lines, nil
}

// add adds the file at path, and the files below it if it is a directory. name is its path as find
// would print it.
func (l *listing) add(ctx context.Context, path, name string, info fs.FileInfo) error {
	for _, e := range l.except {
		if e.MatchString(name) {
			return nil
		}
	}
	var content string
	var err error
	switch mode := info.Mode(); {
	case mode.IsRegular():
		content, err = l.sum(ctx, path)
	case mode&fs.ModeSymlink != 0:
		content, err = l.target(ctx, path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was removed after it was listed
		return nil
	case errors.Is(err, fs.ErrPermission):
		content = "not readable"
	case err != nil:
		return err
	}
	if err := l.memory.Add(len(name) + len(content)); err != nil {
		return err
	}
	l.lines[name] = info.Mode().String() + " " + content
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
		if err := l.add(ctx, join(path, entry), join(name, entry), info); err != nil {
			return err
		}
	}
	return nil
}

// join returns the path of an entry of dir. Unlike path.Join, and like find, it does not clean dir.
func join(dir string, e fs.DirEntry) string {
	return strings.TrimSuffix(dir, "/") + "/" + e.Name()
}

// target returns the target of a symbolic link.
func (l *listing) target(ctx context.Context, path string) (string, error) {
	reader, ok := l.files.(sandbox.LinkReader)
	if !ok {
		return "", fmt.Errorf("read link %.200q: %w", path, errors.ErrUnsupported)
	}
	return reader.ReadLink(ctx, path)
}

// sum returns a sum of a file's lines. It does not depend on the order of the lines, because find
// prints in no order.
func (l *listing) sum(ctx context.Context, path string) (string, error) {
	file, err := l.files.Open(ctx, path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	s := &lineSum{line: hmac.New(sha256.New, l.key)}
	chunk := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := file.Read(chunk)
		s.add(chunk[:n])
		if err == io.EOF {
			return s.String(), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", ctxerr.Of(ctx)
}

// A lineSum adds up the keyed hashes of lines. Its memory does not depend on their length.
type lineSum struct {
	line  hash.Hash // of the line that has begun
	begun bool      // a line has begun, and has not ended
	count uint64    // of lines
	total [4]uint64
}

func (s *lineSum) add(p []byte) {
	for len(p) > 0 {
		line, rest, ends := bytes.Cut(p, []byte("\n"))
		s.line.Write(line)
		s.begun = true
		if ends {
			s.endLine()
		}
		p = rest
	}
}

func (s *lineSum) endLine() {
	sum := s.line.Sum(nil)
	s.line.Reset()
	s.begun = false
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
	if s.begun {
		s.endLine()
	}
	return fmt.Sprintf("%d lines, %x", s.count, s.total)
}

// findPattern returns a regular expression for a pattern of find -path. Its * and ? match a slash
// too.
func findPattern(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for rest := pattern; rest != ""; {
		char := rest[:1] // one byte, perhaps a part of a rune
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
