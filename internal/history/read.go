//go:build linux

package history

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// readTries is how often a file is read that changes meanwhile.
const readTries = 3

// smallFile is how large a file may be that is read at once.
const smallFile = 256 << 10

// file returns the entry of a regular file, and adds its content to the store. e is its entry
// without a kind.
func (s *scan) file(dir int, e *entry, path string) (*entry, error) {
	fd, _, err := s.openChild(dir, e, 0)
	if err != nil {
		return e, err
	}
	var st unix.Stat_t
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	for try := 1; ; try++ {
		now := time.Now()
		if err := fstat(fd, &st); err != nil {
			return e, err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return e, errChanged
		}
		read := newEntry(e.name, file, &st, now)
		steady, err := s.content(f, read)
		if err == errChanged && try < readTries {
			continue
		}
		if err != nil {
			return e, err
		}
		read.more = withXattrs(read.more, fd)
		var after unix.Stat_t
		if err := fstat(fd, &after); err != nil {
			return e, err
		}
		if after.Ctim != st.Ctim {
			steady = false
		}
		if steady || try == readTries {
			read.racy = read.racy || !steady
			return read, nil
		}
	}
}

// content reads a file's content. It reports false if the size was not that of stat.
func (s *scan) content(f *os.File, e *entry) (steady bool, err error) {
	if data := dataExtents(f, e.size); data != nil {
		e.more = &more{extents: data}
	}
	size := e.stored()
	if s.bytes.Add(size) > s.limits.Bytes {
		return false, s.tooLarge()
	}
	var r io.Reader = io.NewSectionReader(f, 0, s.limits.Bytes)
	if x := e.rest().extents; x != nil {
		r = sections(f, x)
	}
	n := int64(0)
	if size <= smallFile {
		buf := make([]byte, size+1) // the last byte is for a file that has grown
		var m int
		for m < len(buf) && err == nil {
			var k int
			k, err = r.Read(buf[m:])
			m += k
		}
		if err != nil && err != io.EOF {
			return false, err
		}
		n = int64(min(m, int(size)))
		data := buf[:n]
		e.sum = sha256.Sum256(data)
		if e.at, err = s.store.add(data, e.sum); err != nil {
			return false, err
		}
		steady = int64(m) == size
	} else {
		n, e.sum, e.at, err = s.store.addStream(untilEnd{s.ctx, io.LimitReader(r, size)})
		if err != nil {
			return false, err
		}
		steady = n == size
	}
	if n < size { // it has become shorter
		if e.rest().extents != nil {
			return false, errChanged
		}
		e.size = n
	}
	return steady, nil
}

// untilEnd is a reader that fails when its context has ended.
type untilEnd struct {
	ctx context.Context
	io.Reader
}

func (r untilEnd) Read(p []byte) (int, error) {
	if err := ctxerr.Of(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// sections returns a reader of the extents of a file.
func sections(f io.ReaderAt, data []extent) io.Reader {
	var parts []io.Reader
	for _, x := range data {
		parts = append(parts, io.NewSectionReader(f, x.offset, x.length))
	}
	return io.MultiReader(parts...)
}

// mostExtents bounds the extents of a file. Holes after that many become zeros.
const mostExtents = 10_000

// dataExtents returns the extents of a file that has holes, and nil for others.
func dataExtents(f *os.File, size int64) []extent {
	var st unix.Stat_t
	if size < 4096 || fstat(int(f.Fd()), &st) != nil || st.Blocks*512 >= size {
		return nil
	}
	data := []extent{}
	for at := int64(0); at < size; {
		start, err := f.Seek(at, unix.SEEK_DATA)
		if err != nil || start >= size { // ENXIO: a hole to the end
			break
		}
		end, err := f.Seek(start, unix.SEEK_HOLE)
		if err != nil || start == 0 && end >= size {
			return nil
		}
		if at = min(end, size); len(data) == mostExtents-1 {
			at = size
		}
		data = append(data, extent{start, at - start})
	}
	if len(data) == 0 {
		data = append(data, extent{}) // no data, which is not the same as no holes
	}
	return data
}

// mostXattrs bounds a list of names, and a value (XATTR_LIST_MAX and XATTR_SIZE_MAX of Linux).
const mostXattrs = 64 << 10

// withXattrs adds the extended attributes of a file to m.
func withXattrs(m *more, fd int) *more {
	var small [256]byte
	buf := small[:]
	n, err := unix.Flistxattr(fd, buf)
	if err == unix.ERANGE {
		buf = make([]byte, mostXattrs)
		n, err = unix.Flistxattr(fd, buf)
	}
	if err != nil || n == 0 { // the file system may have none
		return m
	}
	var found []xattr
	for name := range bytes.SplitSeq(bytes.TrimSuffix(buf[:n], []byte{0}), []byte{0}) {
		if !keptXattr(string(name)) {
			continue
		}
		value := make([]byte, mostXattrs)
		n, err := unix.Fgetxattr(fd, string(name), value)
		if err != nil {
			continue // it was removed meanwhile, or may not be read
		}
		found = append(found, xattr{string(name), string(value[:n])})
	}
	if len(found) == 0 {
		return m
	}
	slices.SortFunc(found, func(a, b xattr) int { return strings.Compare(a.name, b.name) })
	if m == nil {
		m = &more{}
	}
	m.xattrs = found
	return m
}

// keptXattr reports whether an extended attribute is a user's: one that is the machine's, such as
// SELinux's label, is not.
func keptXattr(name string) bool {
	switch name {
	case "system.posix_acl_access", "system.posix_acl_default", "security.capability":
		return true
	}
	return len(name) > 5 && name[:5] == "user."
}
