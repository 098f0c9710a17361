package archive

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

const (
	// bufferSize is the size of the pieces in which files are read and written. Small files and
	// headers are collected into such pieces.
	bufferSize = 64 << 10

	// maxName bounds the names in an archive. Readers of archives have bounds of their own, and
	// fail at a longer name.
	maxName = 16 << 10

	// sizelessLimit bounds the copy of a file that does not report its size: the whole file is in
	// memory before its header can be written.
	sizelessLimit = 16 << 20
)

// Pack writes the file or directory at path as an archive. It leaves out files below path that
// cannot be read. The error is then a *sandbox.CopyError, and the archive has its trailer. After
// any other error the archive has no trailer. ctx ends a search for holes, during which nothing is
// written.
func Pack(ctx context.Context, w io.Writer, path string) error {
	path, name, err := resolve(path)
	if err != nil {
		return err
	}
	p := newPacker(w)
	p.sparse = true
	return p.packAll(ctx, path, name, "")
}

// PackForTar is Pack for tar(1) at the other end. The root gets the name root. The last entry is an
// empty file with the name end: if tar has made that file, the archive was complete.
func PackForTar(w io.Writer, path, root, end string) error {
	path, _, err := resolve(path)
	if err != nil {
		return err
	}
	return newPacker(w).packAll(context.Background(), path, root, end)
}

// Name returns the name that a copy of the file or directory at path has by default. For a root of
// the file system it is ".".
func Name(path string) (string, error) {
	_, name, err := resolve(path)
	return name, err
}

// A packer writes one archive.
type packer struct {
	out      *bufio.Writer
	tar      *tar.Writer
	buf      []byte
	extended []byte            // the buffer of the last extended header
	links    map[fileID]string // the first name of each file that has several
	sparse   bool              // the reader is Unpack, which makes holes
	begun    bool              // the root's entry has been written
	skipped  sandbox.CopyError

	// extents asks the system for the extents of a file: dataExtents.
	extents func(*os.File, fs.FileInfo) []extent
}

func newPacker(w io.Writer) *packer {
	out := bufio.NewWriterSize(w, bufferSize)
	return &packer{
		out: out, tar: tar.NewWriter(out), buf: make([]byte, bufferSize),
		links: map[fileID]string{}, extents: dataExtents,
	}
}

func (p *packer) packAll(ctx context.Context, at, root, end string) error {
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if err := p.packEntry(ctx, source{path: at}, info, at, root); err != nil {
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

// packEntry packs the file at a source. shown is its path in errors, and name its name in the
// archive.
func (p *packer) packEntry(ctx context.Context, at source, info fs.FileInfo,
	shown, name string) error {
	switch kind := info.Mode().Type(); {
	case kind&(fs.ModeSocket|fs.ModeDevice) != 0 && !p.begun:
		return &fs.PathError{Op: "copy", Path: shown, Err: syscall.ENOTSUP}
	case kind&(fs.ModeSocket|fs.ModeDevice) != 0:
		return nil
	case len(name) > maxName:
		return p.skip(shown, syscall.ENAMETOOLONG)
	case kind.IsRegular():
		return p.packFile(ctx, at, shown, name)
	case kind.IsDir():
		return p.packDir(ctx, at, info, shown, name)
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

// skip leaves out a file that cannot be read. If that is the root, it returns an error.
func (p *packer) skip(shown string, err error) error {
	fault := copyError(shown, err)
	if !p.begun {
		return fault
	}
	p.skipped.Add(fault)
	return nil
}

func (p *packer) packDir(ctx context.Context, at source, info fs.FileInfo,
	shown, name string) error {
	in, done, err := at.openDir()
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
		info, err := e.Info() // in a directory of an os.Root, it has been read with the name
		if err == nil {
			err = p.packEntry(ctx, below, info, shown, name)
		} else {
			err = p.skip(shown, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeHeader writes an entry's header. Records, and the fraction of a second in the entry's time,
// go into an extended header before it.
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
		p.extended = appendExtended(p.extended[:0], records)
		if _, err := p.out.Write(p.extended); err != nil {
			return err
		}
	}
	return p.writeTarHeader(h, shown)
}

func (p *packer) writeLink(info fs.FileInfo, shown, name, first string) error {
	return p.writeTarHeader(&tar.Header{
		Format: tar.FormatGNU, Typeflag: tar.TypeLink, Name: name, Linkname: first,
		ModTime: info.ModTime(),
	}, shown)
}

func (p *packer) writeTarHeader(h *tar.Header, shown string) error {
	err := p.tar.WriteHeader(h)
	if errors.Is(err, tar.ErrHeader) {
		return &fs.PathError{Op: "copy", Path: shown, Err: err}
	}
	p.begun = true
	return err
}

// An anonymous FileInfo has no owner. For others, package tar looks up the owner's name; if the
// owner has none, it reads /etc/passwd once for each file.
type anonymous struct{ fs.FileInfo }

func (anonymous) Uname() (string, error) { return "", nil }
func (anonymous) Gname() (string, error) { return "", nil }
