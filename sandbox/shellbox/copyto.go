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
	"path/filepath"
	"sync"
)

// CopyTo implements sandbox.Sandbox. The copy is made beside its destination and moved there when it is whole, unless
// it is a directory that goes into one of the same name: then it is added to what is there, file by file.
// The files belong to the sandbox's user. Needs tar in the sandbox.
func (b *Box) CopyTo(ctx context.Context, hostPath, boxPath string) error {
	if err := b.copyTo(ctx, hostPath, boxPath); err != nil {
		return fmt.Errorf("copy %s to %s in %s: %w", hostPath, boxPath, b, err)
	}
	return nil
}

// copyToScript unpacks the archive on its standard input. Arguments: destination, the source's name, "dir" or "file".
const copyToScript = resolveScript + `
if [ -d "$p" ]; then d=$p n=$2; fi
[ -d "$d" ] || fail ENOENT "$d"
case $d in /) d=;; esac
if [ -d "$d/$n" ]; then
	[ $3 = dir ] || fail EISDIR "$d/$n"
elif [ $3 = dir ] && { [ -e "$d/$n" ] || [ -L "$d/$n" ]; }; then
	fail ENOTDIR "$d/$n"
fi
t=$d/.sandshell-copy-$$
trap 'rm -rf "$t"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -m 700 "$t" 2>/dev/null || { [ -w "${d:-/}" ] && fail ENOSPC "$d"; fail EACCES "${d:-/}"; }
(cd "$t" && tar -xpof -) || exit 1
if [ -d "$d/$n" ] && [ ! -L "$d/$n" ]; then
	cp -a "$t/x/." "$d/$n/"
else
	mv -f "$t/x" "$d/$n"
fi
`

// resolveScript finds the destination of a copy, $1: its absolute path p, parent d and name n.
const resolveScript = `
fail() { echo "sandshell: $1 $2" >&2; exit 1; }
p=$1
case $p in '~') p=$HOME;; '~/'*) p=$HOME/${p#??};; esac
while :; do case $p in ?*/) p=${p%/};; *) break;; esac; done
d=${p%/*} n=${p##*/}
case $d in '') d=/;; esac
`

func (b *Box) copyTo(ctx context.Context, hostPath, boxPath string) error {
	info, err := os.Lstat(hostPath)
	if err != nil {
		return err
	}
	kind, name := "file", filepath.Base(filepath.Clean(hostPath))
	if abs, err := filepath.Abs(hostPath); err == nil {
		name = filepath.Base(abs)
	}
	if info.IsDir() {
		kind = "dir"
	}
	ctx, done, err := b.call(ctx)
	if err != nil {
		return err
	}
	defer done()
	p := &packer{root: hostPath}
	err = b.copyScript(ctx, copyToScript, []string{boxPath, name, kind}, p, io.Discard)
	if perr := p.failed(); perr != nil {
		return perr
	}
	return err
}

// A packer is an archive to be read, and is packed straight into what it is copied to: a pipe between the two would cost a change of
// goroutine for each piece.
type packer struct {
	root string
	mu   sync.Mutex
	err  error // of this side's files
}

func (p *packer) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// WriteTo implements io.WriterTo, which io.Copy prefers.
func (p *packer) WriteTo(w io.Writer) (int64, error) {
	to := &countedWriter{w: w}
	buf := bufio.NewWriterSize(to, 64<<10) // a header is 512 bytes: not each a write
	err := pack(buf, p.root)
	if err == nil {
		err = buf.Flush()
	}
	if to.err == nil && err != nil {
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
	}
	return to.n, err
}

func (p *packer) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// A countedWriter remembers whether it was the writing that failed.
type countedWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *countedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

// pack writes path as an archive whose root is named x. The format is GNU's: busybox's tar reads no long names but that way.
func pack(w io.Writer, root string) error {
	tw := tar.NewWriter(w)
	links := map[fileID]string{}
	buf := make([]byte, 64<<10)
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var target string
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if target, err = os.Readlink(p); err != nil {
				return err
			}
		case info.Mode()&fs.ModeSocket != 0:
			return nil // there is nothing in it to copy
		}
		h, err := tar.FileInfoHeader(info, target)
		if err != nil {
			return &fs.PathError{Op: "copy", Path: p, Err: err}
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		h.Name = "x"
		if rel != "." {
			h.Name = "x/" + filepath.ToSlash(rel)
		}
		if info.IsDir() {
			h.Name += "/"
		}
		h.Format, h.Uname, h.Gname, h.Uid, h.Gid = tar.FormatGNU, "", "", 0, 0
		if id, ok := hardLinked(info); ok && info.Mode().IsRegular() {
			if first, ok := links[id]; ok {
				h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			} else {
				links[id] = h.Name
			}
		}
		if err := tw.WriteHeader(h); err != nil {
			return &fs.PathError{Op: "copy", Path: p, Err: err}
		}
		if h.Typeflag != tar.TypeReg {
			return nil
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := io.CopyBuffer(struct{ io.Writer }{tw}, io.LimitReader(f, h.Size), buf) // not tw's ReadFrom: a buffer for each file
		if err == nil && n < h.Size {
			err = errors.New("it became shorter while it was read")
		}
		if err != nil {
			return &fs.PathError{Op: "copy", Path: p, Err: err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tw.Close()
}
