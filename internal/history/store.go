//go:build linux

package history

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// A store keeps the points of one directory in these files. They only grow, but for what a Save
// that failed has left. Forget makes holes in them.
const (
	headsFile    = "heads"    // a head for each point, all of one size
	treesFile    = "trees"    // trees, and patches
	contentsFile = "contents" // files, without names
	indexFile    = "index"    // where the contents are, by their SHA-256
)

// storeName returns the name of the store of a directory.
func storeName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16])
}

// A head describes a point. The point exists once its head has been written.
type head struct {
	id      uint64 // 0: how a Back has left the directory, which is no point for users
	time    int64  // in nanoseconds since 1970
	entries uint64
	bytes   uint64
	added   uint64
	skipped uint64
	unsaved uint64 // 1: no point for users has all of this tree
	// 1: it is no longer a point for users, but others may need its patch
	forgotten uint64
	base      uint64 // the head with the whole tree, to which the patches after it apply
	tree      uint64 // where its tree or patch begins in treesFile
	trees     uint64 // the lengths of the files
	contents  uint64
	index     uint64
}

const headSize = 14 * 8

func (h *head) fields() []*uint64 {
	return []*uint64{&h.id, &h.entries, &h.bytes, &h.added, &h.skipped, &h.unsaved, &h.forgotten,
		&h.base, &h.tree, &h.trees, &h.contents, &h.index}
}

func (h *head) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(h.time))
	for _, f := range h.fields() {
		b = binary.BigEndian.AppendUint64(b, *f)
	}
	return binary.BigEndian.AppendUint64(b, uint64(crc32.ChecksumIEEE(b)))
}

func (h *head) decode(b []byte) bool {
	sum := binary.BigEndian.Uint64(b[headSize-8:])
	if sum != uint64(crc32.ChecksumIEEE(b[:headSize-8])) {
		return false
	}
	h.time = int64(binary.BigEndian.Uint64(b))
	for _, f := range h.fields() {
		b = b[8:]
		*f = binary.BigEndian.Uint64(b)
	}
	return true
}

// Bounds for a store that another program has changed.
const (
	mostHeads = 1 << 20
	mostTrees = 512 << 20 // bytes of one tree and its patches
)

type store struct {
	path                                 string
	lock, headsF, trees, contents, index *os.File
	heads                                []head

	mu      sync.Mutex
	end     int64              // of contents, with what is pending
	pending []byte             // what is not yet in the file
	known   map[[32]byte]int64 // where the contents are; nil until it is needed
	added   []byte             // to the index
}

// openStore opens the store in a directory and locks it. It makes the store if there is none.
func openStore(ctx context.Context, path string) (s *store, err error) {
	for _, dir := range []string{filepath.Dir(path), path} {
		if err := privateDir(dir); err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
	}
	s = &store{path: path}
	defer func() {
		if err != nil {
			s.close()
			s, err = nil, fmt.Errorf("open the store: %w", err)
		}
	}()
	if s.lock, err = s.openFile("lock"); err == nil {
		err = flock(ctx, s.lock)
	}
	if err != nil {
		return s, err
	}
	for name, f := range map[string]**os.File{headsFile: &s.headsF, treesFile: &s.trees,
		contentsFile: &s.contents, indexFile: &s.index} {
		if *f, err = s.openFile(name); err != nil {
			return s, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(s.headsF, mostHeads*headSize))
	if err != nil {
		return s, err
	}
	for len(text) >= headSize {
		var h head
		if !h.decode(text) {
			break
		}
		s.heads = append(s.heads, h)
		text = text[headSize:]
	}
	if s.last().index > mostTrees {
		return s, errDamaged
	}
	return s, s.rollBack()
}

// openFile opens a file of the store, which it makes if there is none.
func (s *store) openFile(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(s.path, name),
		os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
}

// privateDir makes a directory that no other user can enter, or checks that it is one.
func privateDir(path string) error {
	err := os.Mkdir(path, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&(unix.S_IFMT|0o077) != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: it is not a directory "+
			"that only this user may enter: remove it", fs.ErrPermission)}
	}
	return nil
}

// usableBase returns an error unless stores can be made in base.
func usableBase(base string) error {
	if err := privateDir(base); err != nil {
		return err
	}
	if err := unix.Faccessat(unix.AT_FDCWD, base, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "write", Path: base, Err: err}
	}
	return nil
}

// flock locks a file. The lock ends when the file is closed. The kernel's own wait would not end
// with ctx.
func flock(ctx context.Context, f *os.File) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			return err
		}
		select {
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		case <-time.After(pause):
		}
	}
}

func (s *store) close() {
	for _, f := range []*os.File{s.headsF, s.trees, s.contents, s.index, s.lock} {
		if f != nil {
			f.Close()
		}
	}
}

// last returns the last head; a zero one if there is none.
func (s *store) last() head {
	if len(s.heads) == 0 {
		return head{}
	}
	return s.heads[len(s.heads)-1]
}

// rollBack drops what is not part of any point.
func (s *store) rollBack() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last()
	s.end, s.pending, s.known, s.added = int64(last.contents), nil, nil, nil
	var errs []error
	for f, size := range map[*os.File]int64{s.headsF: int64(len(s.heads)) * headSize,
		s.trees: int64(last.trees), s.contents: int64(last.contents), s.index: int64(last.index)} {
		info, err := f.Stat()
		if err == nil && info.Size() < size {
			err = errDamaged
		}
		if err == nil && info.Size() > size {
			err = f.Truncate(size)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// find returns the number of the head of a point.
func (s *store) find(id int) (int, error) {
	for i, h := range s.heads {
		if id > 0 && h.id == uint64(id) && h.forgotten == 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("point %d: %w: Points lists those that there are", id, fs.ErrNotExist)
}

// tree returns the tree of a head.
func (s *store) tree(i int) (*entry, error) {
	h := s.heads[i]
	if h.base > uint64(i) {
		return nil, errDamaged
	}
	if from := s.heads[h.base].tree; h.trees < from || h.trees-from > mostTrees {
		return nil, errDamaged
	}
	var root *entry
	for k := int(h.base); k <= i; k++ {
		var err error
		if root, err = s.treeAfter(k, root); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// treeAfter returns the tree of a head. before is that of the head before it.
func (s *store) treeAfter(i int, before *entry) (*entry, error) {
	h := s.heads[i]
	if h.base > uint64(i) || h.tree > h.trees || h.trees > s.last().trees ||
		h.trees-h.tree > mostTrees {
		return nil, errDamaged
	}
	text := make([]byte, h.trees-h.tree)
	if _, err := s.trees.ReadAt(text, int64(h.tree)); err != nil {
		return nil, fmt.Errorf("read a tree: %w", err)
	}
	if h.base == uint64(i) {
		return decodeTree(string(text))
	}
	return decodePatch(string(text), before)
}

// current returns the tree of the last head, or nil.
func (s *store) current() (*entry, error) {
	if len(s.heads) == 0 {
		return nil, nil
	}
	return s.tree(len(s.heads) - 1)
}

// commit makes a point of what has been added since the last one. then is the tree of the last
// head.
func (s *store) commit(h head, now, then *entry) error {
	last := s.last()
	h.base, h.tree = last.base, last.trees
	var text []byte
	if then != nil {
		text = appendPatch(nil, now, then)
		base := s.heads[last.base]
		whole := base.trees - base.tree
		if last.trees-base.tree+uint64(len(text)) > 2*whole+64<<10 {
			then = nil // the patches would become more than the tree
		}
	}
	if then == nil {
		text = appendTree(nil, now)
		h.base = uint64(len(s.heads))
	}
	err := s.flush()
	if err == nil {
		_, err = s.trees.WriteAt(text, int64(last.trees))
	}
	if err == nil {
		_, err = s.index.WriteAt(s.added, int64(last.index))
	}
	h.trees, h.contents = last.trees+uint64(len(text)), uint64(s.end)
	h.index = last.index + uint64(len(s.added))
	h.added = h.contents - last.contents + uint64(len(text)+len(s.added)) + headSize
	if err == nil {
		_, err = s.headsF.WriteAt(h.encode(), int64(len(s.heads))*headSize)
	}
	if err != nil {
		return fmt.Errorf("write the store: %w", err)
	}
	s.heads = append(s.heads, h)
	s.added = nil
	return nil
}

// nextID returns the id of the next point.
func (s *store) nextID() (id uint64) {
	for _, h := range s.heads {
		id = max(id, h.id)
	}
	return id + 1
}
