package shellbox

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// CopyFrom implements sandbox.Sandbox. The copy is made beside its destination and moved there when it is whole, unless
// it is a directory that goes into one of the same name: then it is added to what is there, file by file. Needs tar in the sandbox.
func (b *Box) CopyFrom(ctx context.Context, boxPath, hostPath string) error {
	if err := b.copyFrom(ctx, boxPath, hostPath); err != nil {
		return fmt.Errorf("copy %s in %s to %s: %w", boxPath, b, hostPath, err)
	}
	return nil
}

// copyFromScript packs its argument; the archive's first entry tells its name.
const copyFromScript = resolveScript + `
[ -e "$p" ] || [ -L "$p" ] || { [ ! -d "$d" ] || [ -x "$d" ] || fail EACCES "$d"; fail ENOENT "$p"; }
[ -d "$p" ] || [ -L "$p" ] || [ -r "$p" ] || fail EACCES "$p"
case $n in ''|.|..) cd "$p" && n=$(pwd -P) && d=${n%/*} n=${n##*/};; esac
case $n in '') cd / && exec tar -cf - .;; esac
cd "${d:-/}" && exec tar -cf - "./$n"
`

func (b *Box) copyFrom(ctx context.Context, boxPath, hostPath string) error {
	into, err := os.Stat(hostPath)
	inside := err == nil && into.IsDir()
	dir, name := filepath.Split(filepath.Clean(hostPath))
	if inside {
		dir = hostPath
	}
	if dir == "" {
		dir = "."
	}
	parent, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer parent.Close()
	ctx, done, err := b.call(ctx)
	if err != nil {
		return err
	}
	defer done()

	u := &unpacker{parent: parent, name: name}
	if inside {
		u.name = ""
	}
	err = b.copyScript(ctx, copyFromScript, []string{boxPath}, nil, u)
	defer u.close()
	if u.err != nil && err == nil {
		err = u.err
	}
	if err != nil { // the archive may be whole all the same, and lack what tar could not read
		return err
	}
	return u.commit()
}

func (u *unpacker) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

// ReadFrom implements io.ReaderFrom, which io.Copy prefers.
func (u *unpacker) ReadFrom(r io.Reader) (int64, error) {
	u.top, u.err = u.unpack(bufio.NewReaderSize(r, 64<<10))
	return 0, u.err
}

// An unpacker writes an archive that is not to be trusted below parent, and nowhere else: os.Root refuses each path that leaves it, by
// ".." or through a link.
type unpacker struct {
	parent *os.Root
	top    string // the archive's first name
	err    error  // of the unpacking
	name   string // of the copy; "": as the archive has it
	temp   string
}

// unpack writes the archive to a temporary directory beside the destination.
func (u *unpacker) unpack(r io.Reader) (top string, err error) {
	temp := fmt.Sprintf(".sandshell-copy-%d-%d", os.Getpid(), time.Now().UnixNano())
	if err := u.parent.Mkdir(temp, 0o700); err != nil {
		return "", err
	}
	u.temp = temp
	root, err := u.parent.OpenRoot(u.temp)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if top, err = extract(root, tar.NewReader(r)); err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, r) // the padding
	return top, err
}

// commit moves what was unpacked to its place.
func (u *unpacker) commit() error {
	if u.name == "" {
		u.name = u.top
	}
	if u.top == "" || u.name == "" || u.name == "." || u.name == ".." {
		return errors.New("the sandbox sent no file: give the copy a name")
	}
	return u.move(u.temp+"/"+u.top, u.name)
}

func (u *unpacker) close() {
	if u.temp != "" {
		u.parent.RemoveAll(u.temp)
	}
}

// move moves what is at from to the name to; directories are merged.
func (u *unpacker) move(from, to string) error {
	src, err := u.parent.Lstat(from)
	if err != nil {
		return err
	}
	dst, err := u.parent.Lstat(to)
	if err == nil && src.IsDir() && dst.Mode()&fs.ModeSymlink != 0 {
		dst, err = u.parent.Stat(to)
	}
	if err != nil || !src.IsDir() || !dst.IsDir() {
		return u.parent.Rename(from, to)
	}
	entries, err := fs.ReadDir(u.parent.FS(), from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := u.move(path.Join(from, e.Name()), path.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// extract writes the archive below root and returns the name of its first entry.
func extract(root *os.Root, tr *tar.Reader) (top string, err error) {
	buf := make([]byte, 64<<10)
	var within *os.Root // the directory of the last file, so that not each file's path is walked from the root
	var withinName string
	defer func() {
		if within != nil {
			within.Close()
		}
	}()
	var dirs []*tar.Header // their modes and times are set last: a read-only directory takes no files
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		name := path.Clean(h.Name)
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return "", fmt.Errorf("the sandbox sent an archive with the path %q, which leads out of it", h.Name)
		}
		if first, _, _ := strings.Cut(name, "/"); top == "" {
			top = first
		}
		name = filepath.FromSlash(name)
		mode := h.FileInfo().Mode()
		switch h.Typeflag {
		case tar.TypeDir:
			if err := root.MkdirAll(name, 0o700); err != nil {
				return "", err
			}
			dirs = append(dirs, h)
			continue
		case tar.TypeReg:
			if d := filepath.Dir(name); within == nil || d != withinName {
				if within != nil {
					within.Close()
				}
				if within, err = root.OpenRoot(d); err != nil {
					return "", err
				}
				withinName = d
			}
			if err = writeFile(within, filepath.Base(name), mode.Perm(), h.ModTime, tr, buf); err == nil {
				continue
			}
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
			if err == nil {
				continue
			}
		case tar.TypeLink:
			if err = root.Link(filepath.FromSlash(path.Clean(h.Linkname)), name); err == nil {
				continue
			}
		default: // a device or FIFO of the sandbox is none here
			continue
		}
		if err == nil {
			err = root.Chmod(name, mode.Perm())
		}
		if err == nil {
			err = root.Chtimes(name, h.ModTime, h.ModTime)
		}
		if err != nil {
			return "", err
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		h := dirs[i]
		name := filepath.FromSlash(path.Clean(h.Name))
		if err := errors.Join(root.Chmod(name, h.FileInfo().Mode().Perm()), root.Chtimes(name, h.ModTime, h.ModTime)); err != nil {
			return "", err
		}
	}
	return top, nil
}

func writeFile(root *os.Root, name string, mode fs.FileMode, modified time.Time, r io.Reader, buf []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, r, buf)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, modified, modified)
}
