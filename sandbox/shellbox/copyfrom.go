package shellbox

import (
	"archive/tar"
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

	r, w := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		u := unpacker{parent: parent, name: name}
		if inside {
			u.name = ""
		}
		err := u.unpack(r)
		r.CloseWithError(err)
		unpacked <- err
	}()
	// The archive ends with the script: were it cut, the error is the script's.
	err = b.copyScript(ctx, copyFromScript, []string{boxPath}, nil, w)
	if err != nil {
		w.CloseWithError(errCopyEnded)
	} else {
		w.Close()
	}
	if uerr := <-unpacked; uerr != nil && !errors.Is(uerr, errCopyEnded) {
		return uerr
	}
	return err
}

// An unpacker writes an archive that is not to be trusted below parent, and nowhere else: os.Root refuses each path that leaves it, by
// ".." or through a link.
type unpacker struct {
	parent *os.Root
	name   string // of the copy; "": as the archive has it
	temp   string
}

func (u *unpacker) unpack(r io.Reader) error {
	u.temp = fmt.Sprintf(".sandshell-copy-%d-%d", os.Getpid(), time.Now().UnixNano())
	if err := u.parent.Mkdir(u.temp, 0o700); err != nil {
		return err
	}
	defer u.parent.RemoveAll(u.temp)
	root, err := u.parent.OpenRoot(u.temp)
	if err != nil {
		return err
	}
	defer root.Close()
	top, err := extract(root, tar.NewReader(r))
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // the padding, and how the script ended
		return err
	}
	if u.name == "" {
		u.name = top
	}
	if top == "" || u.name == "" || u.name == "." || u.name == ".." {
		return errors.New("the sandbox sent no file: give the copy a name")
	}
	return u.move(u.temp+"/"+top, u.name)
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
			err = writeFile(root, name, tr)
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

func writeFile(root *os.Root, name string, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
