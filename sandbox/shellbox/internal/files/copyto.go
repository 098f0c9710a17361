package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// CopyTo is CopyTo of the box.
func (f *Files) CopyTo(ctx context.Context, hostPath, boxPath string) error {
	if err := f.copyTo(ctx, hostPath, boxPath); err != nil {
		return fmt.Errorf("copy %s to %s in %s: %w", shown(hostPath), shown(boxPath), f.box.Name,
			err)
	}
	return nil
}

// shown returns a path in the form that errors show: an empty one in quotes.
func shown(path string) string {
	if path == "" {
		return `""`
	}
	return path
}

// copyToScript unpacks the archive on its standard input. Its arguments are the destination, the
// source's name, the temporary directory's name, and "dir" or "file". tar accepts an archive that
// is cut off between two files. So the archive's last file is an empty one, tarEnd: the archive is
// whole if that file is there.
const copyToScript = resolveScript + clearScript + `
if [ -d "$p" ]; then d=$p n=$2; fi
case $4$1 in file?*/) [ -d "$p" ] || fail "Not a directory" "$p";; esac
[ -d "$d" ] || {
	[ -e "$d" ] && fail "Not a directory" "$d"
	fail "No such file or directory" "$d"
}
case $n in .) fail "Invalid argument" "$d";; esac
case $d in /) d=;; esac
at=$d
if [ -d "$d/$n" ]; then
	[ $4 = dir ] || fail "Is a directory" "$d/$n"
	at=$d/$n
elif [ $4 = dir ] && { [ -e "$d/$n" ] || [ -L "$d/$n" ]; }; then
	fail "Not a directory" "$d/$n"
elif [ -e "$d/$n" ] && [ ! -f "$d/$n" ] && [ ! -L "$d/$n" ]; then
	fail "Invalid argument" "$d/$n"
fi
t=$at/$3
trap 'clear "$t"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -m 700 "$t" 2>/dev/null || {
	[ -w "${at:-/}" ] && fail "No space left on device" "$at"
	fail "Permission denied" "${at:-/}"
}
(cd "$t" && tar -xpof -) || exit 1
[ -f "$t/` + tarEnd + `" ] || fail "Broken pipe" "$d/$n"
if [ "$at" != "$d" ]; then
	cp -a "$t/` + tarRoot + `/." "$at/"
elif [ -d "$t/` + tarRoot + `" ] && [ ! -w "$t/` + tarRoot + `" ]; then
	chmod u+w "$t/` + tarRoot + `" && mv -f "$t/` + tarRoot + `" "$d/$n" && chmod u-w "$d/$n"
else
	mv -f "$t/` + tarRoot + `" "$d/$n"
fi
`

// copyToCleanScript removes the temporary directory of a copyToScript that was killed, from each
// place where that may have made it. Its arguments are the first three of copyToScript's.
const copyToCleanScript = resolveScript + clearScript + `
for at in "$d" "$p" "$p/$2"; do
	[ ! -d "$at/$3" ] || clear "$at/$3"
done
`

// clearScript defines clear, which removes a directory with whatever modes its files have.
const clearScript = `
clear() { rm -rf "$1" 2>/dev/null || { chmod -R u+rwx "$1" && rm -rf "$1"; }; }
`

// cleanLimit bounds the removal on a box that hardly answers. If the caller's ctx has ended,
// undoGrace bounds it.
const cleanLimit = 10 * time.Second

// The names of the root and of the last file in an archive for tar.
const tarRoot, tarEnd = "x", "end"

// resolveScript sets p, d and n to the absolute path, the parent and the name of $1.
const resolveScript = `
fail() { printf 'sandshell: %s: %s\n' "$2" "$1" >&2; exit 1; }
p=$1
case $p in '~') p=$HOME;; '~/'*) p=$HOME/${p#??};; esac
while :; do case $p in ?*/) p=${p%/};; *) break;; esac; done
d=${p%/*} n=${p##*/}
case $d in '') d=/;; esac
`

func (f *Files) copyTo(ctx context.Context, hostPath, boxPath string) error {
	if hostPath == "" {
		return fmt.Errorf("%w: this machine's path %q is empty", fs.ErrInvalid, hostPath)
	}
	info, err := os.Lstat(hostPath)
	if err != nil {
		return err
	}
	to, err := f.box.Path(boxPath)
	if err != nil {
		return err
	}
	ctx, done, err := f.box.Call(ctx)
	if err != nil {
		return err
	}
	defer done()
	src := &source{write: func(ctx context.Context, w io.Writer) error {
		return archive.Pack(ctx, w, hostPath)
	}}
	if c := f.box.Copier(); c != nil {
		err = c.Unpack(ctx, to, func(w io.Writer) error { return src.pack(ctx, w) })
		if err != nil {
			err = f.copierError(ctx, err)
		}
	} else {
		name, nerr := archive.Name(hostPath)
		if nerr != nil {
			return nerr
		}
		kind := "file"
		if info.IsDir() {
			kind = "dir"
		}
		src.write = func(_ context.Context, w io.Writer) error {
			return archive.PackForTar(w, hostPath, tarRoot, tarEnd)
		}
		args := []string{to, name, ".sandshell-copy-" + rand.Text()}
		var status int
		status, _, err = f.runScript(ctx, copyToScript, append(args, kind), stdinArchive{ctx, src},
			io.Discard)
		if status > 128 || ctx.Err() != nil {
			limit := cleanLimit
			if ctx.Err() != nil {
				limit = undoGrace
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			f.runScript(ctx, copyToCleanScript, args, nil, io.Discard)
		}
	}
	if perr := src.close(); perr != nil {
		return perr
	}
	if err == nil && src.skipped != nil {
		return src.skipped
	}
	return explainParent(err, to)
}

// explainParent adds to the error of a copy to a path what to do if the directory of the copy does
// not exist.
func explainParent(err error, to string) error {
	var at *fs.PathError
	if errors.Is(err, fs.ErrNotExist) && errors.As(err, &at) &&
		path.Clean(at.Path) == path.Dir(path.Clean(to)) {
		return fmt.Errorf("%w: make this directory first", err)
	}
	return err
}

// A source packs files directly into the writer at the other end. A pipe between the two would cost
// a switch of goroutines for each piece.
type source struct {
	write func(context.Context, io.Writer) error

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	err     error              // of this machine's files
	skipped *sandbox.CopyError // the files that were left out
}

// pack packs until ctx ends.
func (s *source) pack(ctx context.Context, w io.Writer) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return os.ErrClosed
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	to := &errWriter{ctx: ctx, w: w}
	err := s.write(ctx, to)
	if errors.As(err, &s.skipped) { // the archive is whole
		return nil
	}
	if to.err == nil {
		s.err = err
	}
	return err
}

// close waits for the end of pack, and returns the error of this machine's files.
func (s *source) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	return s.err
}

// An errWriter remembers the error of a write. Its writes fail when ctx has ended.
type errWriter struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (d *errWriter) Write(p []byte) (n int, err error) {
	if d.ctx.Err() != nil {
		d.err = ctxerr.Of(d.ctx)
		return 0, d.err
	}
	n, err = d.w.Write(p)
	if err != nil {
		d.err = err
	}
	return n, err
}

// A stdinArchive is a source in the form of a command's standard input.
type stdinArchive struct {
	ctx context.Context
	*source
}

func (p stdinArchive) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// WriteTo implements io.WriterTo, which io.Copy prefers to Read.
func (p stdinArchive) WriteTo(w io.Writer) (int64, error) { return 0, p.pack(p.ctx, w) }
