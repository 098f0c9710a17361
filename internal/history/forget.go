//go:build linux

package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// forget forgets points, and frees what only they have. What the last head has stays: the next Save
// compares the directory with it.
//
// A process that is killed meanwhile leaves a good store. What it has not freed, the next forget
// frees.
func (s *store) forget(ctx context.Context, points []sandbox.Point) error {
	if len(points) == 0 {
		return nil
	}
	heads := slices.Clone(s.heads)
	for _, p := range points {
		i, err := s.find(p.ID)
		if err != nil {
			return err
		}
		heads[i].forgotten = 1
	}
	last := len(heads) - 1
	if heads[last].id == 0 || heads[last].forgotten == 1 {
		heads[last].unsaved = 1 // it may have been one of them, or be equal to one
	}
	used, err := s.used(ctx, heads)
	if err == nil {
		err = s.dropFromIndex(used.contents)
	}
	if err == nil {
		err = s.replaceHeads(heads)
	}
	if err == nil {
		err = punch(s.contents, used.parts, int64(s.last().contents))
	}
	if err == nil {
		err = punch(s.trees, used.trees, int64(s.last().trees))
	}
	if err != nil && !errors.Is(err, errDamaged) {
		err = fmt.Errorf("write the store: %w", err)
	}
	return err
}

// used is what of a store's files is still needed.
type used struct {
	contents     map[content]bool
	parts, trees []extent // of the files, in no order, and overlapping
}

// A content is the content of a file, and where it is.
type content struct {
	sum [32]byte
	at  int64
}

// used returns what those of the heads need that are not forgotten, and the last one.
func (s *store) used(ctx context.Context, heads []head) (*used, error) {
	u := &used{contents: map[content]bool{}}
	seen := map[*entry]bool{} // directories; trees share those that are equal
	var walk func(e *entry)
	walk = func(e *entry) {
		switch c := (content{e.sum, e.at}); {
		case e.kind == directory && !seen[e]:
			seen[e] = true
			for _, c := range e.children {
				walk(c)
			}
		case e.kind == file && !u.contents[c]:
			u.contents[c] = true
			u.parts = append(u.parts, extent{e.at, e.stored()})
		}
	}
	keep := func(i int) bool {
		return heads[i].id != 0 && heads[i].forgotten == 0 || i == len(heads)-1
	}
	needed := make([]bool, len(heads)) // of others' trees nothing may be left
	from := uint64(len(heads))
	for i := range slices.Backward(heads) {
		if keep(i) {
			from = min(from, heads[i].base)
		}
		needed[i] = uint64(i) >= from
	}
	var root *entry
	for i, h := range heads {
		if err := ctxerr.Of(ctx); err != nil {
			return nil, err
		}
		if !needed[i] {
			continue
		}
		var err error
		if root, err = s.treeAfter(i, root); err != nil {
			return nil, err
		}
		if keep(i) {
			walk(root)
			from := int64(heads[h.base].tree)
			u.trees = append(u.trees, extent{from, int64(h.trees) - from})
		}
	}
	return u, nil
}

// dropFromIndex overwrites the entries of contents that are no longer used with zeros, so that no
// Save takes them for contents that are there.
func (s *store) dropFromIndex(used map[content]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.loadIndexLocked(); err != nil {
		return err
	}
	text := make([]byte, s.last().index)
	if _, err := s.index.ReadAt(text, 0); err != nil && len(text) > 0 {
		return err
	}
	for one := text; len(one) >= indexSize; one = one[indexSize:] {
		if sum, at := indexEntry(one); !used[content{sum, at}] {
			clear(one[:indexSize])
		}
	}
	s.known = nil
	_, err := s.index.WriteAt(text, 0)
	return err
}

// replaceHeads writes the heads as a whole or not at all.
func (s *store) replaceHeads(heads []head) error {
	var text []byte
	for _, h := range heads {
		text = append(text, h.encode()...)
	}
	path := filepath.Join(s.path, headsFile)
	if err := os.Remove(path + ".new"); err != nil && !os.IsNotExist(err) {
		return err
	}
	f, err := s.openFile(headsFile + ".new")
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		f.Close()
		return err
	}
	s.headsF.Close()
	s.headsF, s.heads = f, heads
	return nil
}

// punch makes a hole of all of a file, up to its size, that is not in one of the parts. Where the
// file system cannot make holes, the file stays as it is.
func punch(f *os.File, parts []extent, size int64) error {
	slices.SortFunc(parts, func(a, b extent) int { return cmp.Compare(a.offset, b.offset) })
	at := int64(0)
	for _, p := range append(parts, extent{offset: size}) {
		if p.offset > at {
			err := unix.Fallocate(int(f.Fd()),
				unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, p.offset-at)
			switch err {
			case nil, unix.EINTR: // the next call frees it
			case unix.EOPNOTSUPP, unix.ENOSYS:
				return nil
			default:
				return err
			}
		}
		at = max(at, p.offset+p.length)
	}
	return nil
}
