package archive

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bufferSize is the size of the pieces in which files are read and written. Small files and headers are gathered into such pieces.
const bufferSize = 64 << 10

// Pack writes the file or directory at path as an archive. It returns the first error; the archive then lacks its trailer.
func Pack(w io.Writer, path string) error {
	path, name, err := resolve(path)
	if err != nil {
		return err
	}
	return pack(w, path, name, "")
}

// PackForTar is Pack for tar(1) at the other end. The root gets the name root. The last entry is an empty file of the name end: if tar has made it, the
// archive was whole.
func PackForTar(w io.Writer, path, root, end string) error {
	path, _, err := resolve(path)
	if err != nil {
		return err
	}
	return pack(w, path, root, end)
}

// Name returns the name that a copy of the file or directory at path has unless it is given another; "." for a root of the file system.
func Name(path string) (string, error) {
	_, name, err := resolve(path)
	return name, err
}

// resolve returns the name of what is at path, "." for a root of the file system, and a path to it that has no "..": names can be joined to that, and
// filepath.Join may clean it.
func resolve(path string) (resolved, name string, err error) {
	if path == "" {
		return "", "", &fs.PathError{Op: "copy", Path: path, Err: syscall.ENOENT}
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
	}
	if slices.Contains(strings.Split(filepath.ToSlash(dir), "/"), "..") {
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", "", err
		}
	}
	return filepath.Join(dir, name), name, nil
}

func pack(w io.Writer, path, root, end string) error {
	buf := bufio.NewWriterSize(w, bufferSize)
	p := &packer{
		path: path, root: root,
		out: buf, tar: tar.NewWriter(buf), buf: make([]byte, bufferSize),
		links: map[fileID]string{},
	}
	if err := filepath.WalkDir(path, p.walk); err != nil {
		return err
	}
	if end != "" {
		if err := p.tar.WriteHeader(&tar.Header{Format: tar.FormatGNU, Name: end, Mode: 0o600}); err != nil {
			return err
		}
	}
	if err := p.tar.Close(); err != nil {
		return err
	}
	return buf.Flush()
}

// A packer writes one archive.
type packer struct {
	path  string // of the root
	root  string // its name in the archive
	out   *bufio.Writer
	tar   *tar.Writer
	buf   []byte
	links map[fileID]string // the first name of each file that has several
}

func (p *packer) walk(path string, e fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, err := p.nameOf(path)
	if err != nil {
		return err
	}
	switch t := e.Type(); {
	case t&(fs.ModeSocket|fs.ModeDevice) != 0 && path == p.path:
		return &fs.PathError{Op: "copy", Path: path, Err: syscall.ENOTSUP}
	case t&(fs.ModeSocket|fs.ModeDevice) != 0:
		return nil
	case t.IsDir() && strings.HasPrefix(e.Name(), tempPrefix) && path != p.path:
		return fs.SkipDir
	case t.IsRegular():
		return p.file(path, name)
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	var target string
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := header(info, path, name, target)
	if err != nil {
		return err
	}
	return p.writeHeader(h, path)
}

// nameOf returns the name in the archive of what is at path.
func (p *packer) nameOf(path string) (string, error) {
	rel, err := filepath.Rel(p.path, path)
	if err != nil || rel == "." {
		return p.root, err
	}
	return p.root + "/" + filepath.ToSlash(rel), nil
}

// file packs a regular file.
func (p *packer) file(path, name string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "copy", Path: path, Err: errors.New("it was replaced while it was read")}
	}
	if id, ok := hardLinked(info); ok {
		first, ok := p.links[id]
		if ok {
			return p.writeHeader(&tar.Header{Format: tar.FormatGNU, Typeflag: tar.TypeLink, Name: name, Linkname: first, ModTime: info.ModTime()}, path)
		}
		p.links[id] = name
	}
	h, err := header(info, path, name, "")
	if err != nil {
		return err
	}
	if err := p.writeHeader(h, path); err != nil {
		return err
	}
	if h.Size > bufferSize { // into an empty buffer, whole pieces are not copied
		if err := p.out.Flush(); err != nil {
			return err
		}
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{p.tar}, io.LimitReader(f, h.Size), p.buf) // without ReadFrom, which would allocate a buffer for each file
	if err == nil && n < h.Size {
		err = &fs.PathError{Op: "copy", Path: path, Err: errors.New("it became shorter while it was read")}
	}
	return err
}

func (p *packer) writeHeader(h *tar.Header, path string) error {
	err := p.tar.WriteHeader(h)
	if errors.Is(err, tar.ErrHeader) {
		err = &fs.PathError{Op: "copy", Path: path, Err: err}
	}
	return err
}

func header(info fs.FileInfo, path, name, target string) (*tar.Header, error) {
	h, err := tar.FileInfoHeader(anonymous{info}, target)
	if err != nil {
		return nil, &fs.PathError{Op: "copy", Path: path, Err: err}
	}
	if info.IsDir() {
		name += "/"
	}
	h.Format, h.Name, h.Uid, h.Gid = tar.FormatGNU, name, 0, 0
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	return h, nil
}

// An anonymous file names no owner. Without it, package tar would look up the owner's name; for an owner that has none, it would read /etc/passwd once
// for each file.
type anonymous struct{ fs.FileInfo }

func (anonymous) Uname() (string, error) { return "", nil }
func (anonymous) Gname() (string, error) { return "", nil }
