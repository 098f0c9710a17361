package archive

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// Options are the options of Unpack. The zero value is usable.
type Options struct {
	// Name is the copy's name if the archive's root has none, that is, if it is ".".
	Name string
	// Trusted says that the archive comes from the user to whom the copy belongs. Then Unpack makes
	// FIFOs, keeps the set-user-ID, set-group-ID and sticky bits of files, and follows a
	// destination that is a link to a directory. From anyone else, a FIFO might block a program
	// that reads the copy, and a set-user-ID file would run with the rights of this user.
	Trusted bool
}

// Unpack reads an archive to its end and copies its contents. If path is a directory, the copy is
// made in it, with the name in the archive; otherwise the copy is made at path. No archive can make
// Unpack write elsewhere. Unpack ends when ctx ends, unless r blocks.
func Unpack(ctx context.Context, r io.Reader, path string, o Options) error {
	u, err := NewUnpacker(path, o)
	if err != nil {
		return err
	}
	err = u.Unpack(ctx, r)
	if err == nil {
		err = u.Commit()
	}
	if closed := u.Close(); err == nil && closed != nil {
		err = copyError(u.pathOf(u.rootEntry), closed)
	}
	return err
}

// An Unpacker is Unpack in steps, for a caller who learns only after the archive's end whether to
// commit the copy.
type Unpacker struct {
	trusted   bool
	parent    *os.Root // the directory in which the copy is made
	dir       string   // the path of parent
	name      string   // the copy's name; "": the one in the archive
	mustBeDir bool     // the destination ends in a slash, so the copy must be a directory

	rootName string // Options.Name

	destRoot *os.Root // has temp: parent, or the existing directory that the copy is added to
	merge    bool     // the copy is added to an existing directory
	temp     string   // the name of the temporary directory in which the archive is unpacked

	root      *os.Root           // the directory temp
	rootEntry string             // the name of the archive's root
	complete  bool               // the archive has been read to its end
	dirs      map[string]dirMode // the modes and times to set when all files have been made
	memory    bounded.List       // bounds dirs
	// fileDir is the directory of the last file. It stays open, so that the next file in it needs
	// no walk of the path.
	fileDir     *directory
	fileDirName string
	buf         []byte
}

// dirsMax bounds the memory for the directories of an archive that is not trusted. It allows about
// 90,000.
const dirsMax = 24 << 20

// A dirMode is set on a directory after all files have been made: in a read-only directory no file
// can be made.
type dirMode struct {
	mode     fs.FileMode
	modified time.Time
}

// NewUnpacker returns an Unpacker to path. The caller must call its Close.
func NewUnpacker(path string, o Options) (*Unpacker, error) {
	dir, name := splitPath(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		dir, name = path, ""
	} else if name == "" || name == "." || name == ".." || endsInSlash(path) &&
		errors.Is(err, syscall.ENOTDIR) {
		if err == nil {
			err = syscall.ENOTDIR
		}
		return nil, copyError(path, err)
	}
	// OpenRoot must not open a FIFO, for example.
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, copyError(dir, syscall.ENOTDIR)
	}
	parent, err := os.OpenRoot(dir)
	if err != nil {
		return nil, copyError(dir, err)
	}
	return &Unpacker{
		trusted: o.Trusted, parent: parent, dir: dir, name: name, destRoot: parent,
		mustBeDir: name != "" && endsInSlash(path), rootName: o.Name,
		dirs: map[string]dirMode{}, memory: bounded.List{What: "the list of the directories",
			Max: dirsMax}, buf: make([]byte, bufferSize),
	}, nil
}

// Root returns the name of the archive's root; "" before Unpack has read its entry.
func (u *Unpacker) Root() string { return u.rootEntry }

// Unpack reads the archive to its end.
func (u *Unpacker) Unpack(ctx context.Context, r io.Reader) error {
	in := &endReader{r: bufio.NewReaderSize(r, bufferSize)}
	tr := tar.NewReader(in)
	// Check ctx at each Read: a terabyte of holes comes without reading from r.
	content := readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, ctxerr.Of(ctx)
		}
		return tr.Read(p)
	})
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return copyError(u.pathOf(u.rootEntry), err)
		}
		if err := u.unpackEntry(h, content); err != nil {
			return err
		}
	}
	switch {
	case in.ended:
		return copyError(u.pathOf(u.rootEntry), io.ErrUnexpectedEOF)
	case u.rootEntry == "":
		return copyError(u.pathOf(""), errors.New("the archive is empty"))
	}
	if err := u.finishDirs(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // the padding
		return copyError(u.pathOf(u.rootEntry), err)
	}
	u.complete = true
	return nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// An endReader remembers whether its end has been read. Package tar reads to the end only if an
// archive has no trailer.
type endReader struct {
	r     io.Reader
	ended bool
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if n == 0 && err == io.EOF {
		e.ended = true
	}
	return n, err
}

// unpackEntry makes one file, link or directory.
func (u *Unpacker) unpackEntry(h *tar.Header, r io.Reader) error {
	name := path.Clean(h.Name)
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return copyError(u.pathOf(name), errors.New("the archive has a path that leads out of it"))
	}
	isDir := h.Typeflag == tar.TypeDir
	switch {
	case u.rootEntry == "":
		if strings.Contains(name, "/") {
			return copyError(u.pathOf(name), errors.New("the archive does not begin with its root"))
		}
		if err := u.prepareDest(name, isDir); err != nil {
			return err
		}
	case u.rootEntry != "." && name != u.rootEntry && !strings.HasPrefix(name, u.rootEntry+"/"):
		return copyError(u.pathOf(name), errors.New("the archive has more than one root"))
	}
	local := filepath.FromSlash(name)
	mode := h.FileInfo().Mode()
	kept := fs.ModePerm
	if isDir {
		kept |= fs.ModeSticky
	}
	if u.trusted {
		kept |= fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	}
	var err error
	switch t := h.Typeflag; {
	case t == tar.TypeDir:
		err = u.root.MkdirAll(local, 0o700)
		if err := u.memory.Add(len(local)); err != nil && !u.trusted {
			return copyError(u.pathOf(name), err)
		}
		u.dirs[local] = dirMode{mode & kept, h.ModTime}
	case t == tar.TypeReg || t == tar.TypeGNUSparse || t == tar.TypeCont:
		err = u.unpackFile(local, mode&kept, h, r)
	case t == tar.TypeSymlink:
		err = u.root.Symlink(h.Linkname, local)
	case t == tar.TypeLink:
		err = u.root.Link(filepath.FromSlash(path.Clean(h.Linkname)), local)
	case t == tar.TypeFifo && u.trusted:
		err = u.unpackFIFO(local, mode&kept)
	default: // a device, or a FIFO in an archive that is not trusted
		if name == u.rootEntry {
			err = syscall.ENOTSUP
		}
	}
	if err != nil {
		return copyError(u.pathOf(name), err)
	}
	return nil
}

// prepareDest decides where the copy of the archive's root goes, and makes the temporary directory.
// top is the root's name.
func (u *Unpacker) prepareDest(top string, isDir bool) error {
	u.rootEntry = top
	if u.name == "" {
		u.name = top
		if top == "." && u.rootName != "" {
			u.name = u.rootName
		}
	}
	if u.name == "." {
		return copyError(u.dir, errors.New("what is copied has no name: give the copy one"))
	}
	place := u.pathOf(top)
	there, err := u.parent.Stat(u.name)
	if u.trusted {
		there, err = os.Stat(place)
	}
	link, lerr := u.parent.Lstat(u.name)
	u.merge = err == nil && there.IsDir() && isDir
	switch {
	case u.merge:
		if u.trusted {
			u.destRoot, err = os.OpenRoot(place)
		} else {
			u.destRoot, err = u.parent.OpenRoot(u.name)
		}
		if err != nil {
			u.destRoot = u.parent
			return copyError(place, err)
		}
	case err == nil && there.IsDir():
		return copyError(place, syscall.EISDIR)
	case isDir && lerr == nil, u.mustBeDir && !isDir:
		return copyError(place, syscall.ENOTDIR)
	case lerr == nil:
		if err := checkReplaceable(link); err != nil {
			return copyError(place, err)
		}
	}
	temp := tempPrefix + rand.Text()
	if err := u.destRoot.Mkdir(temp, 0o700); err != nil {
		if u.merge {
			return copyError(place, err)
		}
		return copyError(u.dir, err)
	}
	u.temp = temp
	if u.root, err = u.destRoot.OpenRoot(temp); err != nil {
		return copyError(place, err)
	}
	return nil
}

// pathOf returns the path, for errors, of the copy of an entry.
func (u *Unpacker) pathOf(name string) string {
	if below, ok := strings.CutPrefix(name, u.rootEntry+"/"); ok {
		name = below
	} else if name == u.rootEntry {
		name = ""
	}
	return filepath.Join(u.dir, u.name, filepath.FromSlash(name))
}

func (u *Unpacker) unpackFile(name string, mode fs.FileMode, h *tar.Header, r io.Reader) error {
	size, data := h.Size, []extent{{0, h.Size}}
	if value, ok := h.PAXRecords[sparseKey]; ok {
		var err error
		if size, data, err = parseLayout(value, h.Size); err != nil {
			return err
		}
	}
	fill := func(f target) error { return fill(f, r, size, data, u.buf) }
	if dir := filepath.Dir(name); u.fileDir == nil || dir != u.fileDirName {
		within, err := openDirectory(u.root, dir)
		if err != nil {
			return err
		}
		if u.fileDir != nil {
			u.fileDir.Close()
		}
		u.fileDir, u.fileDirName = &within, dir
	}
	return u.fileDir.create(filepath.Base(name), mode, h.ModTime, fill)
}

// writeFile makes a file. It sets the mode after write, because the mode given to OpenFile is
// subject to the umask.
func writeFile(dir *os.Root, name string, mode fs.FileMode, modified time.Time,
	write func(*os.File) error) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return dir.Chtimes(name, modified, modified)
}

// unpackFIFO makes a FIFO. os.Root cannot make one. So the FIFO is made at a path without any name
// from the archive, and then moved.
func (u *Unpacker) unpackFIFO(name string, mode fs.FileMode) error {
	temp := tempPrefix + rand.Text()
	err := mkfifo(filepath.Join(u.root.Name(), temp))
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := chmod(u.root, temp, mode); err != nil {
		return err
	}
	return u.root.Rename(temp, name)
}

// finishDirs sets the permissions and times of the directories, inner ones first.
func (u *Unpacker) finishDirs() error {
	names := make([]string, 0, len(u.dirs))
	for name := range u.dirs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		d := u.dirs[name]
		if err := finishDir(u.root, name, d); err != nil {
			return copyError(u.pathOf(filepath.ToSlash(name)), err)
		}
	}
	return nil
}

func finishDir(root *os.Root, name string, d dirMode) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(d.mode); err != nil {
		return err
	}
	return root.Chtimes(name, d.modified, d.modified)
}
