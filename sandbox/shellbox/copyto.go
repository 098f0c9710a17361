package shellbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// CopyTo implements sandbox.Sandbox. The copy is made beside its destination and moved there when
// it is whole, unless it is a directory that goes into one of the same name: then it is added to
// what is there, file by file. The files belong to the sandbox's user; sockets and devices are left
// out. Needs tar in the sandbox, unless the host is a [Copier].
func (b *Box) CopyTo(ctx context.Context, hostPath, boxPath string) error {
	if err := b.copyTo(ctx, hostPath, boxPath); err != nil {
		return fmt.Errorf("copy %s to %s in %s: %w", shown(hostPath), shown(boxPath), b, err)
	}
	return nil
}

// shown is a path as errors show it.
func shown(path string) string {
	if path == "" {
		return `""`
	}
	return path
}

// copyToScript unpacks the archive on its standard input. Arguments: destination, the source's
// name, the temporary directory's name, "dir" or "file". tar accepts an archive that is cut off
// between two files; so an empty file comes last, and the archive is whole if that file is there.
const copyToScript = resolveScript + clearScript + `
if [ -d "$p" ]; then d=$p n=$2; fi
case $4$1 in file?*/) [ -d "$p" ] || fail "Not a directory" "$p";; esac
[ -d "$d" ] || { [ -e "$d" ] && fail "Not a directory" "$d"; fail "No such file or directory" "$d"; }
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
mkdir -m 700 "$t" 2>/dev/null || { [ -w "${at:-/}" ] && fail "No space left on device" "$at"; fail "Permission denied" "${at:-/}"; }
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

// leftScript removes what a copyToScript that was killed has left, wherever it has put that. Its
// arguments are the first three of the other's.
const leftScript = resolveScript + clearScript + `
for at in "$d" "$p" "$p/$2"; do
	[ ! -d "$at/$3" ] || clear "$at/$3"
done
`

// clearScript removes a directory, whatever its modes.
const clearScript = `
clear() { rm -rf "$1" 2>/dev/null || { chmod -R u+rwx "$1" && rm -rf "$1"; }; }
`

// leftLimit is how long the removing may take on a box that hardly answers; heedUndo, if the caller
// wants no more.
const leftLimit = 10 * time.Second

// The names of the root and of the last file in an archive for tar.
const tarRoot, tarEnd = "x", "end"

// resolveScript finds the destination of a copy, $1: its absolute path p, parent d and name n.
const resolveScript = `
fail() { printf 'sandshell: %s: %s\n' "$2" "$1" >&2; exit 1; }
p=$1
case $p in '~') p=$HOME;; '~/'*) p=$HOME/${p#??};; esac
while :; do case $p in ?*/) p=${p%/};; *) break;; esac; done
d=${p%/*} n=${p##*/}
case $d in '') d=/;; esac
`

func (b *Box) copyTo(ctx context.Context, hostPath, boxPath string) error {
	if hostPath == "" {
		return fmt.Errorf("%w: this machine's path %q is empty", fs.ErrInvalid, hostPath)
	}
	info, err := os.Lstat(hostPath)
	if err != nil {
		return err
	}
	path, err := b.copyPath(boxPath)
	if err != nil {
		return err
	}
	ctx, done, err := b.call(ctx)
	if err != nil {
		return err
	}
	defer done()
	src := &source{write: func(w io.Writer) error { return archive.Pack(w, hostPath) }}
	if c, ok := b.copier(); ok {
		err = c.Unpack(ctx, path, func(w io.Writer) error { return src.pack(ctx, w) })
		if err != nil {
			err = b.copyFailed(ctx, err)
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
		src.write = func(w io.Writer) error {
			return archive.PackForTar(w, hostPath, tarRoot, tarEnd)
		}
		args := []string{path, name, ".sandshell-copy-" + rand.Text()}
		var status int
		status, _, err = b.copyScript(ctx, copyToScript, append(args, kind), packing{ctx, src},
			io.Discard)
		if status > 128 || ctx.Err() != nil {
			limit := leftLimit
			if ctx.Err() != nil {
				limit = heedUndo
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			b.copyScript(ctx, leftScript, args, nil, io.Discard)
		}
	}
	if perr := src.close(); perr != nil {
		return perr
	}
	if err == nil && src.left != nil {
		return src.left
	}
	return err
}

// A source packs files directly into the writer at the other end: a pipe between the two would cost
// a change of goroutine for each piece.
type source struct {
	write func(io.Writer) error

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	err     error              // of this side's files
	left    *sandbox.CopyError // those that were left out
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
	to := &destination{ctx: ctx, w: w}
	err := s.write(to)
	if errors.As(err, &s.left) { // the archive is whole
		return nil
	}
	if to.err == nil {
		s.err = err
	}
	return err
}

// close waits for the packing's end and returns what went wrong on this side.
func (s *source) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	return s.err
}

// A destination remembers whether a write failed.
type destination struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (d *destination) Write(p []byte) (n int, err error) {
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

// packing is a source as a command's standard input.
type packing struct {
	ctx context.Context
	*source
}

func (p packing) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// WriteTo implements io.WriterTo, which io.Copy prefers.
func (p packing) WriteTo(w io.Writer) (int64, error) { return 0, p.pack(p.ctx, w) }
