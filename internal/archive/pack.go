package archive

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

const (
	// bufferSize is the size of the pieces in which files are read and written. Small files and
	// headers are gathered into such pieces.
	bufferSize = 64 << 10

	// longestName bounds the names in an archive. Readers of archives have bounds of their own, and
	// fail at a longer name.
	longestName = 16 << 10

	// sizelessLimit is how much is copied of a file that does not tell its size: it is in memory
	// before its header can be written.
	sizelessLimit = 16 << 20
)

// Pack writes the file or directory at path as an archive. What is below path and cannot be read is
// left out; the error is then a *sandbox.CopyError, and the archive is whole. After any other error
// the archive lacks its trailer.
func Pack(w io.Writer, path string) error {
	path, name, err := resolve(path)
	if err != nil {
		return err
	}
	p := newPacker(w)
	p.sparse = true
	return p.pack(path, name, "")
}

// PackForTar is Pack for tar(1) at the other end. The root gets the name root. The last entry is an
// empty file of the name end: if tar has made it, the archive was whole.
func PackForTar(w io.Writer, path, root, end string) error {
	path, _, err := resolve(path)
	if err != nil {
		return err
	}
	return newPacker(w).pack(path, root, end)
}

// Name returns the name that a copy of the file or directory at path has unless it is given
// another; "." for a root of the file system.
func Name(path string) (string, error) {
	_, name, err := resolve(path)
	return name, err
}

// resolve returns the name of what is at path, "." for a root of the file system, and a path to it
// that has no "..": names can be joined to that, and filepath.Join may clean it. A slash at the
// path's end follows a link to a directory, whose copy has the link's name.
func resolve(path string) (resolved, name string, err error) {
	if path == "" {
		return "", "", &fs.PathError{Op: "copy", Path: path, Err: syscall.ENOENT}
	}
	if endsInSlash(path) {
		info, err := os.Stat(path)
		if err != nil {
			return "", "", fault(path, err)
		}
		if !info.IsDir() { // not everywhere does Stat heed the slash
			return "", "", fault(path, syscall.ENOTDIR)
		}
	}
	dir, name := split(path)
	switch name {
	case "", ".", "..": // no name: that of the directory is found as pwd -P finds it
		if !filepath.IsAbs(path) {
			wd, err := os.Getwd()
			if err != nil {
				return "", "", err
			}
			path = wd + string(filepath.Separator) + path
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", "", err
		}
		if dir, name = split(path); name == "" {
			return path, ".", nil
		}
	default:
		if endsInSlash(path) {
			resolved, err = filepath.EvalSymlinks(path)
			return resolved, name, err
		}
	}
	if slices.Contains(strings.Split(filepath.ToSlash(dir), "/"), "..") {
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", "", err
		}
	}
	return filepath.Join(dir, name), name, nil
}

// A packer writes one archive.
type packer struct {
	out     *bufio.Writer
	tar     *tar.Writer
	buf     []byte
	more    []byte            // the last extended header
	links   map[fileID]string // the first name of each file that has several
	sparse  bool              // the reader is Unpack, which makes holes
	begun   bool              // the root's entry has been written
	skipped sandbox.CopyError
}

func newPacker(w io.Writer) *packer {
	out := bufio.NewWriterSize(w, bufferSize)
	return &packer{
		out: out, tar: tar.NewWriter(out), buf: make([]byte, bufferSize), links: map[fileID]string{},
	}
}

func (p *packer) pack(at, root, end string) error {
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if err := p.entry(source{path: at}, info, at, root); err != nil {
		return err
	}
	if end != "" {
		h := &tar.Header{Format: tar.FormatGNU, Name: end, Mode: 0o600}
		if err := p.tar.WriteHeader(h); err != nil {
			return err
		}
	}
	if err := p.tar.Close(); err != nil {
		return err
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	if p.skipped.Count > 0 {
		return &p.skipped
	}
	return nil
}

// A source is where a file is that is to be packed. What is below the root is reached from
// directories that are open: a path from the file system's root may be longer than the system
// takes.
type source struct {
	in    *os.Root // nil: path is this machine's
	path  string
	depth int // of directories, below the root
}

func (s source) readlink() (string, error) {
	if s.in == nil {
		return os.Readlink(s.path)
	}
	return s.in.Readlink(s.path)
}

func (s source) open() (*os.File, error) {
	if s.in == nil {
		return os.OpenFile(s.path, os.O_RDONLY|openFlags, 0)
	}
	return s.in.OpenFile(s.path, os.O_RDONLY|openFlags, 0)
}

// openEach and openSome bound the directories that are open at once: each down to a depth that
// hardly any tree has, and one of some below.
const openEach, openSome = 64, 32

// directory returns a directory as the source of what is in it, and what closes it.
func (s source) directory() (source, func(), error) {
	var root *os.Root
	var err error
	switch {
	case s.in == nil:
		root, err = os.OpenRoot(s.path)
	case s.depth < openEach || s.depth%openSome == 0:
		root, err = s.in.OpenRoot(s.path)
	default:
		return source{s.in, s.path, s.depth + 1}, func() {}, nil
	}
	if err != nil {
		return source{}, nil, err
	}
	return source{root, ".", s.depth + 1}, func() { root.Close() }, nil
}

// entry packs what is at a source. shown is its path, for errors, and name that in the archive.
func (p *packer) entry(at source, info fs.FileInfo, shown, name string) error {
	switch kind := info.Mode().Type(); {
	case kind&(fs.ModeSocket|fs.ModeDevice) != 0 && !p.begun:
		return &fs.PathError{Op: "copy", Path: shown, Err: syscall.ENOTSUP}
	case kind&(fs.ModeSocket|fs.ModeDevice) != 0:
		return nil
	case len(name) > longestName:
		return p.skip(shown, syscall.ENAMETOOLONG)
	case kind.IsRegular():
		return p.file(at, shown, name)
	case kind.IsDir():
		return p.directory(at, info, shown, name)
	}
	var target string
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if target, err = at.readlink(); err != nil {
			return p.skip(shown, err)
		}
	}
	return p.writeHeader(info, shown, name, target, nil)
}

// skip leaves out what cannot be read. If that is the root, the copy fails.
func (p *packer) skip(shown string, err error) error {
	fault := fault(shown, err)
	if !p.begun {
		return fault
	}
	p.skipped.Add(fault)
	return nil
}

func (p *packer) directory(at source, info fs.FileInfo, shown, name string) error {
	in, done, err := at.directory()
	var entries []fs.DirEntry
	if err == nil {
		defer done()
		entries, err = in.entries()
	}
	if err != nil && !p.begun {
		return p.skip(shown, err)
	}
	if herr := p.writeHeader(info, shown, name, "", nil); herr != nil {
		return herr
	}
	if err != nil {
		if err := p.skip(shown, err); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		below := source{in.in, path.Join(in.path, e.Name()), in.depth}
		shown, name := shown+string(filepath.Separator)+e.Name(), name+"/"+e.Name()
		info, err := e.Info() // of a directory in an os.Root, it was read with the name
		if err == nil {
			err = p.entry(below, info, shown, name)
		} else {
			err = p.skip(shown, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries returns what is in a directory, by name. After an error it may be a part.
func (s source) entries() ([]fs.DirEntry, error) {
	f, err := s.in.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

// file packs a regular file.
func (p *packer) file(at source, shown, name string) error {
	f, err := at.open()
	if err != nil {
		return p.skip(shown, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it was replaced while it was read")
	}
	if err != nil {
		return p.skip(shown, err)
	}
	id, linked := hardLinked(info)
	if first, ok := p.links[id]; linked && ok {
		return p.writeLink(info, shown, name, first)
	}
	if p.sparse && info.Size() > bufferSize {
		if data := dataOf(f, info); data != nil {
			err = p.sparseFile(f, info, data, shown, name)
		} else {
			err = p.content(f, info, shown, name)
		}
	} else {
		err = p.content(f, info, shown, name)
	}
	if linked && err == nil {
		p.links[id] = name
	}
	return err
}

// content packs a file without holes. The size that the system tells is no promise: a file of /proc
// has none, one of /sys is shorter, and any file may change while it is read. So the beginning,
// which mostly is all of it, is read before the header is written.
func (p *packer) content(f *os.File, info fs.FileInfo, shown, name string) error {
	size, n := info.Size(), 0
	ended := false
	for !ended && n < len(p.buf) && (n == 0 || int64(n) != size) {
		m, err := f.Read(p.buf[n:])
		n += m
		if ended = err == io.EOF; err != nil && !ended {
			return p.skip(shown, err)
		}
	}
	head := p.buf[:n]
	switch {
	case ended:
		size = int64(n)
	case size == 0:
		rest, err := io.ReadAll(io.LimitReader(f, sizelessLimit-int64(n)+1))
		if err != nil {
			return p.skip(shown, err)
		}
		head = slices.Concat(head, rest)
		if len(head) > sizelessLimit {
			head = head[:sizelessLimit]
			why := fmt.Errorf("%w: it does not tell its size, and its copy ends after %d bytes",
				syscall.EFBIG, sizelessLimit)
			if err := p.skip(shown, why); err != nil {
				return err
			}
		}
		size = int64(len(head))
	case size < int64(n): // it has grown
		size = int64(n)
	}
	if err := p.writeHeader(sized{info, size}, shown, name, "", nil); err != nil {
		return err
	}
	if _, err := p.tar.Write(head); err != nil {
		return err
	}
	return p.rest(f, int64(len(head)), size, shown)
}

// sparseFile packs the data of a file that has holes.
func (p *packer) sparseFile(f *os.File, info fs.FileInfo, data []extent, shown, name string) error {
	size := int64(0)
	for _, e := range data {
		size += e.length
	}
	h := sized{info, size}
	if err := p.writeHeader(h, shown, name, "", layout(info.Size(), data)); err != nil {
		return err
	}
	for _, e := range data {
		if _, err := f.Seek(e.offset, io.SeekStart); err != nil {
			return err
		}
		if err := p.rest(f, e.offset, e.offset+e.length, shown); err != nil {
			return err
		}
	}
	return nil
}

// rest packs a file's bytes from one offset, which is the next that f reads, to another. Zeros take
// the place of what cannot be read: the header has promised that many bytes.
func (p *packer) rest(f *os.File, from, to int64, shown string) error {
	if to-from > bufferSize { // into an empty buffer, whole pieces are not copied
		if err := p.out.Flush(); err != nil {
			return err
		}
	}
	for from < to {
		piece := p.buf[:min(int64(len(p.buf)), to-from)]
		n, err := f.Read(piece)
		if err != nil {
			if err == io.EOF {
				err = errors.New("it became shorter while it was read")
			}
			err = fmt.Errorf("%w: the copy has zeros from byte %d on", bare(err), from)
			if err := p.skip(shown, err); err != nil {
				return err
			}
			return p.zeros(to - from)
		}
		if _, err := p.tar.Write(piece[:n]); err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

func (p *packer) zeros(n int64) error {
	clear(p.buf)
	for n > 0 {
		m, err := p.tar.Write(p.buf[:min(int64(len(p.buf)), n)])
		if err != nil {
			return err
		}
		n -= int64(m)
	}
	return nil
}

// writeHeader writes an entry's header, after a block of more if there is more to say: records, and
// the fraction of a second in the entry's time.
func (p *packer) writeHeader(info fs.FileInfo, shown, name, target string, records []record) error {
	h, err := tar.FileInfoHeader(anonymous{info}, target)
	if err != nil {
		return p.skip(shown, err)
	}
	if info.IsDir() {
		name += "/"
	}
	h.Format, h.Name, h.Uid, h.Gid = tar.FormatGNU, name, 0, 0
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	if at := info.ModTime(); at.Nanosecond() != 0 && at.Unix() >= 0 {
		value := strconv.AppendInt(nil, at.Unix(), 10)
		fraction := strconv.Itoa(1e9 + at.Nanosecond())[1:]
		value = append(append(value, '.'), fraction...)
		records = append(records, record{"mtime", string(value)})
	}
	if len(records) > 0 {
		if err := p.tar.Flush(); err != nil {
			return err
		}
		p.more = appendExtended(p.more[:0], records)
		if _, err := p.out.Write(p.more); err != nil {
			return err
		}
	}
	return p.write(h, shown)
}

func (p *packer) writeLink(info fs.FileInfo, shown, name, first string) error {
	return p.write(&tar.Header{
		Format: tar.FormatGNU, Typeflag: tar.TypeLink, Name: name, Linkname: first, ModTime: info.ModTime(),
	}, shown)
}

func (p *packer) write(h *tar.Header, shown string) error {
	err := p.tar.WriteHeader(h)
	if errors.Is(err, tar.ErrHeader) {
		return &fs.PathError{Op: "copy", Path: shown, Err: err}
	}
	p.begun = true
	return err
}

// An anonymous file names no owner. Without it, package tar would look up the owner's name; for an
// owner that has none, it would read /etc/passwd once for each file.
type anonymous struct{ fs.FileInfo }

func (anonymous) Uname() (string, error) { return "", nil }
func (anonymous) Gname() (string, error) { return "", nil }

// A sized file has another size than the system tells.
type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }
